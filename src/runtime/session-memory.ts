/**
 * The memory of a session: what a run is told of earlier runs, and what it leaves to later ones. A run's turn is stored with its
 * ending; a summary of older turns is updated in the background, and no result waits for it.
 */
import {
  assertOptions,
  deepFreeze,
  defined,
  type Entry,
  type Json,
  type OptionShape,
  PilotageError,
  type RunContext,
  type Scope,
  scopeKey,
  type Turn,
} from '#core';
import type { SessionMemory, SessionMemoryStore, SessionSummary, SessionTurn } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';

export interface SummaryInput {
  /** The summary of all turns before `turns`. `undefined`: no turn is summarised. */
  readonly previous: string | undefined;
  /** The turns that the new summary must cover in addition, oldest first. */
  readonly turns: readonly SessionTurn[];
}

/** How the runs of a session continue the conversation. */
export type MemoryOptions =
  | { readonly strategy: 'none' }
  /** How many of the last turns are sent unchanged. Default 20. */
  | { readonly strategy: 'window'; readonly turns?: number }
  /** The turns before the window are sent as a text that `summarise` writes, in the background and as time allows. */
  | {
      readonly strategy: 'summary';
      readonly turns?: number;
      /** Writes the summary. The function limits its own time, and stops when the signal is aborted. */
      readonly summarise: (input: SummaryInput, signal: AbortSignal) => Promise<string>;
      /** How many tries in a row may fail before only the window is sent. Default 3. */
      readonly retries?: number;
    };

export type Remembering = Exclude<MemoryOptions, { readonly strategy: 'none' }>;
type Summarising = Extract<MemoryOptions, { readonly strategy: 'summary' }>;

type Every = { strategy: string; turns?: number; summarise?: unknown; retries?: number };
const OPTIONS: OptionShape<Every> = { strategy: 'any', turns: 'any?', summarise: 'any?', retries: 'any?' };
const DEFAULT_TURNS = 20;
const DEFAULT_RETRIES = 3;
/** Keeps the roles alternating, which some servers insist on. */
const NO_ANSWER = '(no answer was given)';
/** The wait before a second try, in milliseconds; doubled for each further try, and shortened at random. */
const BACKOFF_MS = 100;
/** How long a summary that is being written may delay the closing of the runtime, in milliseconds. */
const CLOSE_WAIT_MS = 5_000;

/** @throws PilotageError `invalid_config` */
export function assertMemoryOptions(options: MemoryOptions): void {
  assertOptions('memory', options, OPTIONS);
  switch (options.strategy) {
    case 'none':
      return;
    case 'window':
      assertCount('turns', options.turns);
      return;
    case 'summary':
      assertCount('turns', options.turns);
      assertCount('retries', options.retries);
      if (typeof options.summarise === 'function') return;
      throw new PilotageError('invalid_config', 'memory.summarise must be a function: it writes the summary.');
    default:
      options satisfies never;
      throw new PilotageError('invalid_config', 'memory.strategy must be none, window or summary.');
  }
}

function assertCount(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value > 0)) return;
  throw new PilotageError('invalid_config', `memory.${name} is ${value}; give a whole number from 1 up.`);
}

export interface Remembered {
  readonly history: readonly Turn[];
  readonly conversationMemory?: Json;
}

/** The history for a new run of the session. While the summary lags behind, up to twice the window is sent. */
export async function historyFor(store: SessionMemoryStore, scope: Scope, options: Remembering): Promise<Remembered> {
  const window = options.turns ?? DEFAULT_TURNS;
  if (options.strategy === 'window') return { history: chat((await store.read(scope, window)).turns) };
  const memory = await store.read(scope, 2 * window);
  const history = chat(memory.turns.slice(-shownTurns(memory, window)));
  const summary = memory.summary?.text ?? '';
  return { history, ...(summary === '' ? {} : { conversationMemory: { strategy: 'summary', summary } }) };
}

/** The first entry, with what the run is given. Options of the caller about the conversation win over the memory. */
export function withMaterial(started: Entry, given: RunContext | undefined, remembered?: Remembered): Entry {
  if (given === undefined && remembered === undefined) return started;
  const { history = [], conversationMemory } = remembered ?? {};
  const context = { ...defined({ conversationMemory }), ...given };
  return deepFreeze({
    ...started,
    ...(history.length === 0 ? {} : { history }),
    ...(Object.keys(context).length === 0 ? {} : { context }),
  });
}

function shownTurns({ count, summary }: SessionMemory, window: number): number {
  if (summary?.health === 'degraded') return window;
  return Math.min(Math.max(window, count - (summary?.covers ?? 0)), 2 * window);
}

function chat(turns: readonly SessionTurn[]): readonly Turn[] {
  return turns.flatMap(({ user, assistant }): Turn[] => [
    { role: 'user', text: user },
    { role: 'assistant', text: assistant === null || assistant === '' ? NO_ANSWER : assistant },
  ]);
}

interface KeeperDeps extends Pick<DriverDeps, 'clock' | 'redaction' | 'onFault'> {
  readonly store: SessionMemoryStore;
}

/** Updates summaries. For each session it writes one at a time; among processes the first to store wins. */
export class SummaryKeeper {
  readonly #deps: KeeperDeps;
  readonly #options: Summarising;
  readonly #window: number;
  /** Sessions that are being updated. True: another run of the session has ended since. */
  readonly #sessions = new Map<string, boolean>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #waits = new Set<() => void>();
  readonly #abort = new AbortController();
  #closing = false;

  constructor(deps: KeeperDeps, options: Summarising) {
    this.#deps = deps;
    this.#options = options;
    this.#window = options.turns ?? DEFAULT_TURNS;
  }

  /** Called when a run of the session has stored its turn. */
  turnEnded(scope: Scope): void {
    const key = scopeKey(scope);
    const busy = this.#sessions.has(key);
    this.#sessions.set(key, busy);
    if (busy) return;
    const task = this.#lookAfter(scope, key)
      .catch(this.#deps.onFault)
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  /** Waits for summaries that are being written, but not for another try, and not for long. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const stop of this.#waits) stop();
    if (this.#tasks.size > 0) {
      let cancel = (): void => {};
      const timeIsUp = new Promise<void>((resolve) => {
        cancel = this.#deps.clock.after(CLOSE_WAIT_MS, resolve);
      });
      await Promise.race([Promise.all(this.#tasks), timeIsUp]);
      cancel();
    }
    this.#abort.abort(
      new PilotageError('runtime_closed', 'The runtime is closed; the summary is written another time.'),
    );
  }

  async #lookAfter(scope: Scope, key: string): Promise<void> {
    try {
      do {
        this.#sessions.set(key, false);
      } while ((await this.#catchUp(scope)) && this.#sessions.get(key) === true);
    } finally {
      this.#sessions.delete(key);
    }
  }

  /** Returns false when an update is useless for now. */
  async #catchUp(scope: Scope): Promise<boolean> {
    const { store } = this.#deps;
    for (;;) {
      const { count, summary } = await store.read(scope, 0);
      const covered = summary?.covers ?? 0;
      // A session that was not kept up for long is taken in parts.
      const until = Math.min(count - this.#window, covered + 2 * this.#window);
      if (until <= covered) return true;
      const { turns } = await store.read(scope, Number.MAX_SAFE_INTEGER, covered);
      const next = await this.#extend(summary, turns.slice(0, until - covered), until);
      // Closed: the store may be, too.
      if (this.#abort.signal.aborted) return false;
      const stored = await store.summarise(scope, summary?.updatedAt, next);
      if (!stored) return true;
      if (next.health === 'degraded') return false;
      if (next.health === 'retrying' && !(await this.#mayRetry(next.failures))) return false;
    }
  }

  /** The summary that also covers `turns`; when writing it fails, the old summary with one more failure. */
  async #extend(
    old: SessionSummary | undefined,
    turns: readonly SessionTurn[],
    covers: number,
  ): Promise<SessionSummary> {
    const { clock, onFault, redaction } = this.#deps;
    const { text: before = '', covers: covered = 0, failures: failed = 0 } = old ?? {};
    const updatedAt = (): number => Math.max(Math.floor(clock.now()), (old?.updatedAt ?? 0) + 1);
    try {
      const previous = before === '' ? undefined : before;
      const text = redaction.known(assertText(await this.#options.summarise({ previous, turns }, this.#abort.signal)));
      return { text, covers, health: 'healthy', failures: 0, updatedAt: updatedAt() };
    } catch (error) {
      if (!this.#abort.signal.aborted) onFault(error);
      const failures = failed + 1;
      const health = failures < (this.#options.retries ?? DEFAULT_RETRIES) ? 'retrying' : 'degraded';
      return { text: before, covers: covered, health, failures, updatedAt: updatedAt() };
    }
  }

  /** Waits for the next try. Returns false when the runtime is closing. */
  async #mayRetry(failures: number): Promise<boolean> {
    if (this.#closing) return false;
    const delayMs = Math.random() * BACKOFF_MS * 2 ** (failures - 1);
    await new Promise<void>((resolve) => {
      const stop = (): void => {
        cancel();
        this.#waits.delete(stop);
        resolve();
      };
      const cancel = this.#deps.clock.after(delayMs, stop);
      this.#waits.add(stop);
    });
    return !this.#closing;
  }
}

function assertText(summary: unknown): string {
  if (typeof summary === 'string' && summary.trim() !== '') return summary.toWellFormed();
  throw new PilotageError('invalid_config', 'memory.summarise must return the summary, a string that is not empty.');
}
