/** What the other rooms and the tests may use of `tools`. */
export type { Agent, AgentLimits, AgentOptions, AgentTool, AnyTool, ToolSet } from './agent.ts';
export { agent, agentTool, asAgent, assertParallelCalls, checkedAgent } from './agent.ts';
export type { AuthorisedTools, Catalogue, ReadyAgentTool, ReadyFunction, ReadyTool } from './catalogue.ts';
export { agentsOf, createCatalogue, DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS } from './catalogue.ts';
export type { Handle, HandleReason, HandleSet, NamedHandle, NoHandles } from './handle.ts';
export { DEFAULT_OPEN_MS, handle } from './handle.ts';
export type { Checked, ValueCheck } from './schema.ts';
export { checkOf, jsonSchemaOf } from './schema.ts';
export { skillGet, skillSearch } from './skill-tools.ts';
export type {
  ApprovalGate,
  ArtifactDescription,
  Backoff,
  InputSchema,
  Reconciled,
  Tool,
  ToolContext,
  ToolOptions,
} from './tool.ts';
export { LoginRequired, ToolFailure, tool } from './tool.ts';
export { toolGet } from './tool-get.ts';
export { toolSearch } from './tool-search.ts';
export { partsOf } from './workspace-fence.ts';
