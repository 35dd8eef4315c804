/** `pilotage/server/ai-sdk`: chats of the AI SDK on sessions of a runtime, and an agent of a runtime as the AI SDK's `Agent`. */

export { type AsAgentOptions, asAgent } from './as-agent.ts';
export { type AiSdkOptions, aiSdk } from './chat.ts';
