export type { AuthorisedTools, Catalogue, ReadyTool, ToolSet } from './catalogue.ts';
export { createCatalogue, DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS } from './catalogue.ts';
export type { Checked } from './schema.ts';
export type {
  AnyTool,
  ArtifactDescription,
  EquippedPlanner,
  InputOf,
  InputSchema,
  PlannerTool,
  Reconciled,
  RunBudget,
  Tool,
  ToolContext,
  ToolExample,
  ToolOptions,
} from './tool.ts';
export { LoginRequired, ToolFailure, tool } from './tool.ts';
export type { UnnamedTool } from './unnamed-tool.ts';
export { workspaceTools } from './workspace.ts';
