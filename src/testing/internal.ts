/** What the other rooms and the tests may use of `testing`. */
export { mortalPlanner, mortalTools, worldOf } from './crash-actors.ts';
export { endingProblems, foldProblems, lostEntries, unknownProblems } from './crash-check.ts';
export type { CrashReport } from './crash-everywhere.ts';
export { assertCrashProof, crashEverywhere } from './crash-everywhere.ts';
export { CrashProcess, never } from './crash-process.ts';
export { CrashRecord } from './crash-record.ts';
export type { CrashScenario, CrashWorld } from './crash-scenario.ts';
export { taskProblems, treeOf } from './crash-tree.ts';
export { FaultyJournal } from './faulty-journal.ts';
export {
  ana,
  control,
  createClaimed,
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
export type { ChatMessage, ChatRequest } from './openai-request.ts';
export type { OpenAIServer, RecordedRequest, ServerHandler, ServerReply } from './openai-server.ts';
export { openaiServer } from './openai-server.ts';
export type { PlannerCapabilities, PlannerScenario, PlannerScenarioName } from './planner-cases/kit.ts';
export type { PlannerConformanceOptions } from './planner-conformance.ts';
export { plannerConformance } from './planner-conformance.ts';
export { recordingModel } from './recording-model.ts';
export type { RunViewOptions } from './run-view.ts';
export { runView, toolView } from './run-view.ts';
export type { ReplyFunction, ScriptedCall, ScriptedModel, ScriptedReply, ScriptedRequest } from './scripted-model.ts';
export { scriptedModel, split } from './scripted-model.ts';
export { seededRandom } from './seeded-random.ts';
export { VirtualClock } from './virtual-clock.ts';
