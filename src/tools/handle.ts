/** Live values that the calls of a run share, such as a browser page or a transaction: opened and closed by the runtime. */
import { assertKnownKeys, type Identity, type OptionShape, PilotageError } from '#core';

export interface HandleContext {
  readonly identity: Identity;
  /** Is aborted at the time limit, and when this process stops driving the run. */
  readonly signal: AbortSignal;
  /**
   * The number of the opening, 1 for the first of the run. With a higher number the value before is gone, with everything that it
   * kept.
   */
  readonly opening: number;
}

/**
 * Why a handle is closed.
 * - `finished`, `failed`, `cancelled`: the run has ended so.
 * - `let_go`: the run waits for something, or could not go on for now, and any process may go on with it.
 * - `lost`: another process has the run, or the value was not usable any more.
 * - `closing`: the runtime was closed.
 */
export type HandleReason = 'finished' | 'failed' | 'cancelled' | 'let_go' | 'lost' | 'closing';

export interface HandleClosing {
  readonly identity: Identity;
  readonly reason: HandleReason;
}

export interface Handle<T = unknown> {
  /** The name, of letters, digits, `.`, `_` and `-`, beginning with a letter. People and models read it when the handle was lost. */
  readonly name: string;
  /**
   * Called before the first call of a run that needs it, once for all calls of the run in this process. An error that it throws is
   * the outcome of the calls that wait for the value; the next call tries again. A `LoginRequired` pauses the run.
   */
  open(context: HandleContext): T | Promise<T>;
  /** Called once for each value that was opened. It has 5,000 ms. An error that it throws is reported to `onFault` of the runtime. */
  close(value: T, closing: HandleClosing): void | Promise<void>;
  /**
   * Called before each call that uses the value. When it returns false or throws, the value is closed, and counts as lost.
   * Default: true.
   */
  isOpen?(value: T): boolean;
  /**
   * What a call finds when the value that earlier calls used is gone: after a crash, in another process, or because the run was
   * let go of meanwhile.
   * - `reopen` (default): the call gets a new value, and the journal, readers and the model are told.
   * - `fail`: all calls of that step that need the value have the outcome `handle_lost`, and are not made. From the next step on,
   *   when the planner has seen that, a new value is opened.
   */
  readonly onLost?: 'reopen' | 'fail';
  /**
   * Milliseconds for which the value is kept when this process stops driving a waiting run, in case it goes on with the run.
   * Default 0.
   */
  readonly keepMs?: number;
  /** The time limit for opening the value, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
}

/** Handles by the names under which a tool gets their values. */
export type HandleSet = Readonly<Record<string, Handle>>;
export type NoHandles = Readonly<Record<never, never>>;

export type LiveHandles<H extends HandleSet> = {
  readonly [K in keyof H]: H[K] extends Handle<infer T> ? T : never;
};

/** Types the value from what `open` gives. The result is the plain object that was passed in. */
export function handle<T>(options: Handle<T>): Handle<T> {
  return options;
}

export const DEFAULT_OPEN_MS = 30_000;

/** The name under which a tool gets the value, and the handle. */
export type NamedHandle = readonly [key: string, handle: Handle];

/** @throws PilotageError `invalid_config` for a value that is not a handle. */
export function namedHandles(given: unknown, owner: string): readonly NamedHandle[] | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new PilotageError(
      'invalid_config',
      `${owner}: \`handles\` must be an object such as { page: handle({ … }) }.`,
    );
  }
  const named = Object.entries(given);
  for (const [key, each] of named) assertHandle(each, `${owner} has a handle ${JSON.stringify(key)} that`);
  return named.length === 0 ? undefined : named;
}

const HANDLE: OptionShape<Handle> = {
  ...({
    name: 'any',
    open: 'any',
    close: 'any',
    isOpen: 'any?',
    onLost: 'any?',
    keepMs: 'any?',
    timeoutMs: 'any?',
  } as const),
};
const NAME = /^[A-Za-z][\w.-]{0,99}$/;

function assertHandle(given: unknown, what: string): void {
  const refuse = (why: string): PilotageError => new PilotageError('invalid_config', `${what} ${why}`);
  if (typeof given !== 'object' || given === null) throw refuse('is not a handle: give handle({ name, open, close }).');
  assertKnownKeys(what, given, Object.keys(HANDLE));
  const { name, open, close, isOpen, onLost = 'reopen', keepMs = 0, timeoutMs = 1 } = given as Partial<Handle>;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw refuse('needs a name of letters, digits, ".", "_" and "-" that begins with a letter.');
  }
  if (typeof open !== 'function' || typeof close !== 'function') {
    throw refuse('needs the functions open and close; close may do nothing.');
  }
  if (isOpen !== undefined && typeof isOpen !== 'function')
    throw refuse('has an isOpen that is not a function. Give a function, or leave isOpen out.');
  if (onLost !== 'reopen' && onLost !== 'fail')
    throw refuse(`has the onLost ${JSON.stringify(onLost)}; use reopen or fail.`);
  if (!Number.isInteger(keepMs) || keepMs < 0) throw refuse(`has keepMs ${keepMs}; give a whole number from 0 up.`);
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1)
    throw refuse(`has timeoutMs ${timeoutMs}; give a whole number from 1 up.`);
}

/** @throws PilotageError `invalid_config` when two handles share a name: a run has one value of each name. */
export function assertDistinct(used: Iterable<NamedHandle>): void {
  const known = new Map<string, Handle>();
  for (const [, each] of used) {
    const other = known.get(each.name) ?? each;
    if (other !== each) {
      const message = `Two handles are named ${JSON.stringify(each.name)}. Give all tools that share one the same handle, or rename one.`;
      throw new PilotageError('invalid_config', message);
    }
    known.set(each.name, each);
  }
}
