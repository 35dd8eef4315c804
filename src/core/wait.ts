/** Waits of calls: what a tool waits for in the middle of its work, and how such a wait ends. */
import type { ErrorData } from './errors.ts';
import type { Json, JsonObject } from './json.ts';
import type { CallPlace } from './step.ts';

/** What a call waits for: somebody's answer, a time, or an event of the outside. */
export type WaitFor = (typeof WAITS_FOR)[number];
export const WAITS_FOR = ['answer', 'time', 'event'] as const;

/** The place of a wait in its run. */
export interface WaitPlace extends CallPlace {
  /** The number of the wait in its call, from 1. Whenever the call's function runs again, its n-th wait is this one. */
  readonly wait: number;
}

export interface CallWait {
  readonly wait: number;
  readonly for: WaitFor;
  /** When the time has come, or when an event is waited for no more. Milliseconds since the epoch. */
  readonly until?: number;
  /** Set for an event: whoever signals the event names this key. */
  readonly key?: string;
  /** JSON Schema of the payload of an event. */
  readonly schema?: JsonObject;
  /** Set for an answer: the token of the pause that asks for it. */
  readonly token?: string;
  /** Set when the call waits for this once more: why what came before did not fit, as its schema's own code says. */
  readonly again?: string;
}

/** The value of a call that comes later. */
export interface LaterValue {
  readonly key: string;
  /** How often the tool is asked for it, in milliseconds. Absent: never. */
  readonly pollEveryMs?: number;
  /** When the call fails without it. Milliseconds since the epoch. */
  readonly expiresAt?: number;
}

/** How a wait has ended, for the call that waited. */
export type WaitEnd =
  | { readonly ended: 'time' }
  | { readonly ended: 'event'; readonly payload: Json; readonly signal: string }
  | { readonly ended: 'answer'; readonly value: Json }
  /** Somebody did not want to answer. */
  | { readonly ended: 'declined'; readonly reason?: string }
  /** Whoever was to carry the call out says that it has failed. */
  | { readonly ended: 'failed'; readonly error: ErrorData }
  /** Nobody answered, or nothing came, in time. */
  | { readonly ended: 'timeout' }
  /** The goal was changed, or the user wrote, before anything came. */
  | { readonly ended: 'superseded' };

/** A signal that was delivered to a wait of the run. Only the journal makes it. */
export interface EventMessage {
  readonly id: string;
  readonly type: 'EVENT';
  readonly at: WaitPlace;
  readonly key: string;
  readonly payload: Json;
  /** The id of the signal. */
  readonly signal: string;
}

/** Unique in its run. */
export function waitId({ step, call, wait }: WaitPlace): string {
  return `${step}.${call}.${wait}`;
}
