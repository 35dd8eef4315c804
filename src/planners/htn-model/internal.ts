/** What the other rooms and the tests may use of `planners/htn-model`. */
export type { HtnModelOptions } from './asker.ts';
export { chooseWith } from './choose-with.ts';
export { fillWith } from './fill-with.ts';
