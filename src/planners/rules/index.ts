export type { Rule, RulePlanner, RulesOptions } from './rules.ts';
export { rules } from './rules.ts';
