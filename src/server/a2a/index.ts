/** `pilotage/server/a2a`: offers agents to other agents, and uses other agents as tools. */
export { type A2aOptions, a2a } from './a2a.ts';
export type { CardOptions } from './card.ts';
export { type A2aToolOptions, a2aTool } from './tool.ts';
export type { AgentCard, AgentInterface, AgentSkill } from './wire.ts';
