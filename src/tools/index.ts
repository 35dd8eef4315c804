export type { Agent, AgentLimits, AgentOptions, AgentTool, AgentToolOptions, AnyTool, ToolSet } from './agent.ts';
export { agent, agentTool } from './agent.ts';
export type { AuthorisedTools, Catalogue, ReadyTool } from './catalogue.ts';
export { createCatalogue, DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS } from './catalogue.ts';
export type { Checked } from './schema.ts';
export type {
  ArtifactDescription,
  InputOf,
  InputSchema,
  Reconciled,
  Tool,
  ToolContext,
  ToolExample,
  ToolOptions,
} from './tool.ts';
export { LoginRequired, ToolFailure, tool } from './tool.ts';
export type { UnnamedTool } from './unnamed-tool.ts';
export { workspaceTools } from './workspace.ts';
