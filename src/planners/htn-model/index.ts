/** `pilotage/planners/htn-model`: a model for `choose` and `fill` of the htn planner. */
export type { HtnModelOptions } from './asker.ts';
export { chooseWith } from './choose-with.ts';
export { fillWith } from './fill-with.ts';
