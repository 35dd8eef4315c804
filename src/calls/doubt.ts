/**
 * A `once` call of which nobody knows whether it has happened: its process died, or its time limit or an abort met it under
 * way. The tool's `reconcile` is asked; what it cannot say holds the run until somebody does.
 */
import { type Identity, type Json, type JsonObject, type Outcome, scopeKey } from '#core';
import { isTransientStoreError } from '#journal';
import type { ReadyTool } from '#tools';
import { isThenable, type Settled, whatPassed } from './attempt.ts';
import type { PauseAsk } from './gates.ts';

/** What every key of a run's calls begins with; step and call follow. */
export function keyPrefixOf(identity: Identity): string {
  return `${scopeKey(identity)}/${encodeURIComponent(identity.run)}`;
}

/** What is known of a call in doubt. */
export interface Doubt {
  readonly tool: string;
  readonly args: Json;
  /** Its idempotency key. */
  readonly key: string;
  /** When it began. Milliseconds since the epoch. */
  readonly since: number;
  /** Why nobody knows, as a sentence. */
  readonly why: string;
  /** The tool has a `reconcile`, which can be asked again. */
  readonly canLookUp: boolean;
}

function payloadOf({ tool, args, key, since, why, canLookUp }: Doubt): JsonObject {
  return { tool, args, key, since, why, can_look_up: canLookUp };
}

/** What a call in doubt comes to: a pause, unless its tool wants the planner to be told. */
export function inDoubt(doubt: Doubt, tells: boolean): PauseAsk | Outcome {
  if (!tells) return { kind: 'pause', reason: 'in_doubt', payload: payloadOf(doubt) };
  const message = `${doubt.tool} may have happened, but nobody knows. ${doubt.why}`;
  return { kind: 'unknown', error: { code: 'outcome_unknown', message } };
}

/** An attempt of a `once` call of which it is not known whether it has happened. */
export interface Unsure {
  readonly kind: 'unsure';
  readonly why: string;
  /** What it comes to when it has not happened after all. */
  readonly otherwise: Outcome;
  /** The tool ignores its abort, and is at work still: that it has not happened yet says nothing. */
  readonly isAtWork: boolean;
}

/** `undefined`: how the attempt settled says what became of it. @param isStopped it was aborted, not by its time limit. */
/** What a tool throws when it does not know either, and when it knows that nothing has happened; also of another copy of the package. */
export const OUTCOME_UNKNOWN = 'outcome_unknown';
export const NOT_SENT = 'not_sent';

export function isNotSent(settled: Settled<unknown>): boolean {
  return 'error' in settled && settled.error?.code === NOT_SENT;
}

export function unsureOf(settled: Settled<unknown>, tool: ReadyTool, isStopped: boolean): Unsure | undefined {
  if (settled.kind === 'value' || isNotSent(settled)) return undefined;
  const { name } = tool.schema;
  if (settled.kind === 'timeout') {
    const message = `${name} ${whatPassed(settled.limit)}.`;
    const otherwise: Outcome = {
      kind: 'error',
      error: { code: 'tool_timeout', message: `${message} The call did not happen.` },
    };
    return { kind: 'unsure', why: message, otherwise, isAtWork: settled.isAtWork };
  }
  // What our own store could not take, in the middle of the call, does not say that nothing has happened.
  const isStoreAway = settled.kind === 'thrown' && isTransientStoreError(settled.error);
  if (settled.kind === 'thrown' && (isStoreAway || settled.error.code === OUTCOME_UNKNOWN)) {
    const message = isStoreAway
      ? `The store failed in the middle of the call: ${settled.error.message}`
      : settled.error.message;
    const error = { code: 'tool_failed', message: `${message} The call did not happen.` };
    return { kind: 'unsure', why: message, otherwise: { kind: 'error', error }, isAtWork: false };
  }
  if (!isStopped) return undefined;
  const isAtWork = settled.kind === 'abandoned';
  const why = `${name} was stopped while it was under way${isAtWork ? ', and ignored it' : ''}.`;
  const message = 'The call was stopped before it ended. It did not happen.';
  return { kind: 'unsure', why, otherwise: { kind: 'cancelled', error: { code: 'cancelled', message } }, isAtWork };
}

/** Attempts of `once` calls that this process has under way, by their keys; also those that were given up and go on. */
export class AtWork {
  readonly #attempts = new Map<string, Set<object>>();

  has(key: string): boolean {
    return this.#attempts.has(key);
  }

  /** Whether a call of a run is at work: one whose key begins so. */
  hasAny(keyPrefix: string): boolean {
    for (const key of this.#attempts.keys()) if (key.startsWith(`${keyPrefix}/`)) return true;
    return false;
  }

  /** The attempt waits, and nothing of it is at work. */
  forget(key: string, attempt: object): void {
    const attempts = this.#attempts.get(key);
    attempts?.delete(attempt);
    if (attempts?.size === 0) this.#attempts.delete(key);
  }

  /**
   * Passes on what the tool gives, and remembers the attempt until it has ended. With a lazy thenable, `then` does the work:
   * it is asked once.
   */
  watch<T>(key: string, attempt: object, made: T): T | Promise<Awaited<T>> {
    if (!isThenable(made)) return made;
    const attempts = this.#attempts.get(key) ?? new Set();
    this.#attempts.set(key, attempts.add(attempt));
    const promise = Promise.resolve(made);
    const over = (): void => this.forget(key, attempt);
    promise.then(over, over);
    return promise;
  }
}
