/** For tests of planners, tools, journals and whole agents. Nothing here needs a test runner, or reaches a network. */
export type { CrashOptions, CrashReport, CrashViolation } from './crash/everywhere.ts';
export { assertCrashProof, crashEverywhere } from './crash/everywhere.ts';
export type { CrashScenario, CrashWorld } from './crash/scenario.ts';
export type { DriverEngine } from './driver-cases/kit.ts';
export type { DriverConformanceOptions } from './driver-conformance.ts';
export { driverConformance } from './driver-conformance.ts';
export type { ConformanceCase, JournalConformanceOptions } from './journal-conformance.ts';
export { journalConformance } from './journal-conformance.ts';
export type {
  RecordedCall,
  RecordingModel,
  ReplyFunction,
  ScriptedCall,
  ScriptedModel,
  ScriptedModelOptions,
  ScriptedReply,
  ScriptedRequest,
} from './models.ts';
export { recordingModel, scriptedModel } from './models.ts';
export type {
  ChatMessage,
  ChatRequest,
  ChatToolCall,
  OpenAIServer,
  RecordedRequest,
  ServerHandler,
  ServerReply,
} from './openai-server.ts';
export { openaiServer } from './openai-server.ts';
export type { PlannerCapabilities, PlannerScenario, PlannerScenarioName } from './planner-cases/kit.ts';
export type { PlannerConformanceCase, PlannerConformanceOptions } from './planner-conformance.ts';
export { plannerConformance } from './planner-conformance.ts';
export type { RunViewOptions } from './run-view.ts';
export { runView, toolView } from './run-view.ts';
export { TestEngine } from './test-engine.ts';
export { seededRandom, VirtualClock } from './time-and-chance.ts';
