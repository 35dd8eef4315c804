/** `pilotage/sessions`: what `runtime.session` and `runtime.sessions` take and give. */
export type { AcceptedMessage } from '#core';
export type { GivenTurn } from './given-history.ts';
export type { HistoryHooks, HistoryRequest } from './own-history.ts';
export type { SendOptions, SentMessage, Session, SessionOptions } from './session.ts';
export type { SessionEvent, SessionEventOptions } from './session-events.ts';
export { type Acceptance, BUSY_MODES, type BusyMode } from './session-send.ts';
export type { SessionBranch, TurnView } from './session-turns.ts';
export type { Sessions } from './sessions.ts';
