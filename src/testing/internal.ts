/** What the other rooms and the tests may use of `testing`. */

export { endingProblems, foldProblems, lostEntries, taskProblems, treeOf, unknownProblems } from './crash/check.ts';
export type { CrashReport } from './crash/everywhere.ts';
export { assertCrashProof, crashEverywhere } from './crash/everywhere.ts';
export { FaultyJournal } from './crash/faulty-journal.ts';
export { CrashProcess, mortalPlanner, mortalTools, never, worldOf } from './crash/process.ts';
export { CrashRecord } from './crash/record.ts';
export type { CrashScenario, CrashWorld } from './crash/scenario.ts';
export type { DriverEngine } from './driver-cases/kit.ts';
export { driverConformance } from './driver-conformance.ts';
export {
  ana,
  claimFirst,
  control,
  createClaimed,
  createWaiting,
  eventWait,
  expectCode,
  identity,
  newRun,
  newTask,
  sequence,
  startedEntry,
  step,
  stepEntry,
  waiting,
  watchMessage,
} from './journal-cases/kit.ts';
export { journalConformance } from './journal-conformance.ts';
export type { ReplyFunction, ScriptedCall, ScriptedModel, ScriptedReply, ScriptedRequest } from './models.ts';
export { recordingModel, scriptedModel, split } from './models.ts';
export type {
  ChatMessage,
  ChatRequest,
  OpenAIServer,
  RecordedRequest,
  ServerHandler,
  ServerReply,
} from './openai-server.ts';
export { openaiServer } from './openai-server.ts';
export type { PlannerCapabilities, PlannerScenario, PlannerScenarioName } from './planner-cases/kit.ts';
export type { PlannerConformanceOptions } from './planner-conformance.ts';
export { plannerConformance } from './planner-conformance.ts';
export type { RunViewOptions } from './run-view.ts';
export { runView, toolView } from './run-view.ts';
export { TestEngine } from './test-engine.ts';
export { seededRandom, VirtualClock } from './time-and-chance.ts';
