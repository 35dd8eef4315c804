/** What the other rooms and the tests may use of `cli`. */
export { type ChatLine, readChatLine } from './chat-lines.ts';
export { runCommandLine } from './command-line.ts';
export { EventLines } from './event-lines.ts';
export { COMMAND_HELP, type CommandName, HELP } from './help.ts';
export { parseCommandLine, TAKEN } from './options.ts';
export { commandsFor, pauseLines } from './pause-lines.ts';
export { PlanSeen } from './plan-lines.ts';
export { graphLines, planLines, treeLines } from './plan-text.ts';
export { chooseModel } from './project.ts';
export { runCommand } from './run-command.ts';
export { duration, harmless, shellWord, shortLine, size, terminalJson } from './text.ts';
