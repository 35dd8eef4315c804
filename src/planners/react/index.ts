export type { ReactOptions } from './react.ts';
export { react } from './react.ts';
