/** What the other rooms and the tests may use of `tools`. */
export type { AuthorisedTools, Catalogue, ReadyFunction, ReadyPlannerTool, ReadyTool, ToolSet } from './catalogue.ts';
export { carriersOf, createCatalogue, DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS } from './catalogue.ts';
export type {
  Handle,
  HandleClosing,
  HandleContext,
  HandleReason,
  HandleSet,
  LiveHandles,
  NamedHandle,
  NoHandles,
} from './handle.ts';
export { DEFAULT_OPEN_MS, handle } from './handle.ts';
export type { Checked, ValueCheck } from './schema.ts';
export { checkOf, jsonSchemaOf } from './schema.ts';
export { skillGet, skillSearch } from './skill-tools.ts';
export type {
  AnyTool,
  ApprovalGate,
  ArtifactDescription,
  Backoff,
  EquippedPlanner,
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
export { toolGet } from './tool-get.ts';
export { toolSearch } from './tool-search.ts';
export { partsOf } from './workspace-fence.ts';
