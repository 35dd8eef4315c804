/** What the other rooms and the tests may use of `planners/finish`. */
export type { FinishOptions } from './finish.ts';
export { finish } from './finish.ts';
