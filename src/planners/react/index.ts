export type { CompactionOptions, ReactOptions } from './options.ts';
export { react } from './react.ts';
