/** What the other rooms and the tests may use of `tools`. */

export { jsonSchemaOf } from '#schema';
export {
  type Agent,
  type AgentLimits,
  type AgentOptions,
  type AgentTool,
  type AgentToolOptions,
  type AnyTool,
  agent,
  agentTool,
  asCheckedAgent,
  askedOf,
  assertParallelCalls,
  checkedAgent,
  type ToolSet,
} from './agent.ts';
export { carriesOneCall } from './background.ts';
export { skillGet, skillSearch, toolGet, toolSearch } from './builtin-tools.ts';
export {
  type AuthorisedTools,
  agentsOf,
  type Catalogue,
  createCatalogue,
} from './catalogue.ts';
export { readClientTools, withClientTools } from './client-tool.ts';
export {
  DEFAULT_OPEN_MS,
  type Handle,
  type HandleReason,
  type HandleSet,
  handle,
  type NamedHandle,
  type NoHandles,
} from './handle.ts';
export { handoff, successorName } from './handoff.ts';
export { isLater, type Later, later } from './later.ts';
export { resultOf } from './pieces.ts';
export {
  DEFAULT_RETRIES,
  DEFAULT_TIMEOUT_MS,
  type ReadyAgentTool,
  type ReadyFunction,
  type ReadyTool,
} from './ready-tool.ts';
export { factKey, profileCheck, rememberTool } from './remember.ts';
export { type Checked, checkOf, type ValueCheck } from './schema.ts';
export {
  type ApprovalGate,
  type ArtifactDescription,
  type AwaitedEvent,
  type Backoff,
  clientTool,
  type GivenModel,
  type HandsOver,
  type InputOf,
  type InputSchema,
  LoginRequired,
  NotSent,
  OutcomeUnknown,
  type Question,
  type Reconciled,
  type SleepTime,
  type Spent,
  type Tool,
  type ToolContext,
  ToolFailure,
  type ToolOptions,
  tool,
} from './tool.ts';
export { partsOf } from './workspace-fence.ts';
