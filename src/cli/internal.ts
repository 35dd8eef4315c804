/** What the other rooms and the tests may use of `cli`. */
export { chooseModel } from './choose-model.ts';
export { EventLines } from './event-lines.ts';
export type { CommandName } from './help.ts';
export { COMMAND_HELP, HELP } from './help.ts';
export { parseCommandLine, TAKEN } from './options.ts';
export { pauseLines } from './pause-lines.ts';
export { PlanSeen } from './plan-seen.ts';
export { graphLines, planLines, treeLines } from './plan-text.ts';
export { duration, harmless, shellWord, shortLine, size, terminalJson } from './text.ts';
