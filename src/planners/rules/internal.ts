/** What the other rooms and the tests may use of `planners/rules`. */
export type { Rule, RulesOptions } from './rules.ts';
export { rules } from './rules.ts';
