/** What the other rooms and the tests may use of `prompt`. */
export { actLines, cameOf, isAct, mayHaveHappened, shownActs } from './acts.ts';
export { artifactLines } from './artifact-manifest.ts';
export { restoreParts } from './assistant-parts.ts';
export { protocolName } from './call-turns.ts';
export { chooseCut, summaryRequest } from './compaction.ts';
export {
  aboutFrames,
  enclose,
  encloseJson,
  FRAMES,
  frame,
  framedWords,
  jsonLine,
  note,
  quoted,
  quotedJson,
  SECTIONS,
  userWordsIn,
} from './frame.ts';
export { GUIDANCE, guidanceTurn, tierOf } from './guidance.ts';
export { assistantTurn, userTurn } from './messages.ts';
export { errorText } from './outcome-text.ts';
export { hintLines } from './planning-hints.ts';
export type { DeclaredTool } from './reserved-tools.ts';
export { CONTROL_TOOLS } from './reserved-tools.ts';
export { steeringText } from './steering-text.ts';
export { callsOf, isWaitingAnswer } from './step-parts.ts';
export { readSummary, SUMMARY_PARTS, SUMMARY_SCHEMA } from './summary.ts';
export { systemPrompt } from './system-prompt.ts';
export { repeatedCall, unsureCall } from './taught-form.ts';
export { toolDescription, toolEntry } from './tool-text.ts';
export type { TranscriptOptions } from './transcript.ts';
export { Transcript } from './transcript.ts';
export { contextTurns } from './untrusted.ts';
export { requestTurn, unreadableInputs } from './user-turn.ts';
