/** What the other rooms and the tests may use of `prompt`. */

export {
  actLines,
  actsAside,
  cameOf,
  chooseCut,
  cutAt,
  earlierActs,
  isAct,
  mayHaveHappened,
  plainSummary,
  readSummary,
  SUMMARY_PARTS,
  SUMMARY_SCHEMA,
  shownActs,
  summaryRequest,
  summedUpTo,
} from './compaction.ts';
export { EXTRACTION_SCHEMA, extractionRequest, readExtraction } from './extraction.ts';
export {
  aboutFrames,
  assistantTurn,
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
  userTurn,
  userWordsIn,
} from './frame.ts';
export { FINISH_BY_CALL, GUIDANCE, guidanceTurn, lastMoveTurn, tierOf } from './guidance.ts';
export { awaitsCode, restoreParts } from './provider-parts.ts';
export { callsOf, errorText, isWaitingAnswer } from './step-parts.ts';
export { hintLines, repeatedCall, systemPrompt, unsureCall } from './system-prompt.ts';
export type { DeclaredTool } from './tool-text.ts';
export { ANY_CONTROL_TOOLS, CONTROL_TOOLS, controlTools, finishTool, toolDescription, toolEntry } from './tool-text.ts';
export type { TranscriptOptions } from './transcript.ts';
export { Transcript } from './transcript.ts';
export { artifactLines, callsAsideTurn, contextTurns } from './untrusted.ts';
export { requestTurn, steeringText, unreadableInputs } from './user-turn.ts';
