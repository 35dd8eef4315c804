/** `pilotage/tools`: tools of a workspace, the catalogue of a run's tools, and the parts that `tool`, `agentTool` and `handle` of the root are given. */
export type {
  ApprovalRule,
  ApprovalTerms,
  ClientToolSpec,
  Effect,
  Escalation,
  OnFail,
  PolicyAnswer,
  PolicyCall,
  PolicyEarlierCall,
  PolicyView,
  Remember,
  StreamWriter,
  ToolPolicy,
  UndoLimits,
} from '#core';
export type { AgentTool, AgentToolOptions, AnyTool, ToolSet } from './agent.ts';
export type { AuthorisedTools, Catalogue } from './catalogue.ts';
export { createCatalogue } from './catalogue.ts';
export type { HandleClosing, HandleContext, HandleReason, HandleSet, LiveHandles, NoHandles } from './handle.ts';
export type { HandoffOptions } from './handoff.ts';
export type { Later, LaterOptions } from './later.ts';
export { later } from './later.ts';
export type { ReadyTool } from './ready-tool.ts';
export type { Checked } from './schema.ts';
export type {
  ApprovalGate,
  ArtifactDescription,
  AwaitedEvent,
  Backoff,
  ClientTool,
  GateContext,
  GivenModel,
  HandsOver,
  InputOf,
  InputSchema,
  Question,
  Reconciled,
  SleepTime,
  Spent,
  ToolExample,
  UndoCall,
} from './tool.ts';
export { NotSent, OutcomeUnknown } from './tool.ts';
export type { UnnamedTool } from './unnamed-tool.ts';
export { askUser, sleep, waitForEvent } from './waiting-tools.ts';
export type { AddedOptions } from './with-tools.ts';
export { withTools } from './with-tools.ts';
export { workspaceTools } from './workspace.ts';
