/** For tests of planners, tools, journals and whole agents. Nothing here needs a test runner, or reaches a network. */
export type { CrashOptions, CrashReport, CrashViolation } from './crash-everywhere.ts';
export { assertCrashProof, crashEverywhere } from './crash-everywhere.ts';
export type { CrashScenario, CrashWorld } from './crash-scenario.ts';
export type { ConformanceCase, JournalConformanceOptions } from './journal-conformance.ts';
export { journalConformance } from './journal-conformance.ts';
export type { ChatMessage, ChatRequest, ChatToolCall } from './openai-request.ts';
export type { OpenAIServer, RecordedRequest, ServerHandler, ServerReply } from './openai-server.ts';
export { openaiServer } from './openai-server.ts';
export type { PlannerCapabilities, PlannerScenario, PlannerScenarioName } from './planner-cases/kit.ts';
export type { PlannerConformanceCase, PlannerConformanceOptions } from './planner-conformance.ts';
export { plannerConformance } from './planner-conformance.ts';
export type { RecordedCall, RecordingModel } from './recording-model.ts';
export { recordingModel } from './recording-model.ts';
export type { RunViewOptions } from './run-view.ts';
export { runView, toolView } from './run-view.ts';
export type {
  ReplyFunction,
  ScriptedCall,
  ScriptedModel,
  ScriptedModelOptions,
  ScriptedReply,
  ScriptedRequest,
} from './scripted-model.ts';
export { scriptedModel } from './scripted-model.ts';
export { seededRandom } from './seeded-random.ts';
export { VirtualClock } from './virtual-clock.ts';
