/** `pilotage/server/ag-ui`: AG-UI for clients such as `@ag-ui/client` and CopilotKit. */
export { type AgUiOptions, agUi } from './part.ts';
export type { AgUiMessage, AgUiTool, ResumeEntry, RunAgentInput } from './protocol.ts';
