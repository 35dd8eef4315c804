export type { FinishOptions } from './finish.ts';
export { finish } from './finish.ts';
