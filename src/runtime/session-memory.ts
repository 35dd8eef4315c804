/**
 * The memory of a session: which of its runs a new one is told of, in the order in which they were started. What they said is read from
 * their entries. A summary of older runs is updated in the background, and no result waits for it.
 */
import {
  assertOptions,
  type Continued,
  deepFreeze,
  defined,
  type Entry,
  type Json,
  type OptionShape,
  PilotageError,
  type RunContext,
  type Scope,
  type Started,
  scopeKey,
} from '#core';
import type { Journal, RunQuery, RunRecord, RunStatus, SessionSummary } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { type SessionTurn, turnsOfRun } from '../loop/earlier-turns.ts';

export interface SummaryInput {
  /** The summary of the turns before `turns`. `undefined`: no turn is summarised. */
  readonly previous: string | undefined;
  /** The turns that the new summary must cover in addition, oldest first. */
  readonly turns: readonly SessionTurn[];
}

/** How the runs of a session continue the conversation. */
export type MemoryOptions =
  | { readonly strategy: 'none' }
  /** How many of the last turns are sent whole. Default 20. Runs that have not ended are told of also when they are older. */
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
/** How many older runs that have not ended are told of at most, the newest of them. */
const OPEN_RUNS = 20;
const UNENDED: readonly RunStatus[] = ['pending', 'running', 'waiting', 'paused'];
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
  readonly continues?: Continued;
  readonly conversationMemory?: Json;
}

/** What a new run of the session is told. While the summary lags behind, up to twice the window is told whole. */
export async function rememberedFor(journal: Journal, scope: Scope, options: Remembering): Promise<Remembered> {
  const window = options.turns ?? DEFAULT_TURNS;
  const summary = options.strategy === 'summary' ? await journal.memory.summary(scope) : undefined;
  const most = options.strategy === 'window' || summary?.health === 'degraded' ? window : 2 * window;
  const newest = await runsAfter(journal, scope, most, summary?.through);
  // Runs that the summary covers are in the window all the same when there are few newer ones.
  const last = summary !== undefined && newest.length < window ? await runsAfter(journal, scope, window) : newest;
  const older = await openBefore(journal, scope, last, summary?.without);
  const runs = [...older, ...last].map(({ identity: { run }, head }) => ({ run, head }));
  return {
    ...(runs.length === 0 ? {} : { continues: { runs, turns: Math.max(window, last.length) } }),
    ...(summary === undefined || summary.text === ''
      ? {}
      : { conversationMemory: { strategy: 'summary', summary: summary.text } }),
  };
}

/** The first entry, with what the run is given. Options of the caller about the conversation win over the memory. */
export function withMaterial(
  started: Entry,
  given: RunContext | undefined,
  { history, continues, conversationMemory }: Remembered & Pick<Started, 'history'>,
): Entry {
  const context = { ...defined({ conversationMemory }), ...given };
  return deepFreeze({
    ...started,
    ...defined({ history, continues }),
    ...(Object.keys(context).length === 0 ? {} : { context }),
  });
}

const PAGE = 200;

/** The runs of the conversation, newest first, as the store ordered their starts. @param after only older runs than this one. */
async function* newestFirst(
  journal: Journal,
  { tenant, user, session }: Scope,
  query: Pick<RunQuery, 'after' | 'status'> = {},
): AsyncGenerator<RunRecord> {
  for (let after = query.after; ; ) {
    const page = await journal.list({
      ...query,
      tenant,
      user,
      session,
      parent: null,
      limit: PAGE,
      ...defined({ after }),
    });
    yield* page.filter(isTurn);
    after = page.at(-1)?.identity.run;
    if (page.length < PAGE) return;
  }
}

/** The newest runs of the conversation, at most `limit`, those behind the run `behind` alone; the oldest of them first. */
async function runsAfter(journal: Journal, scope: Scope, limit: number, behind = ''): Promise<readonly RunRecord[]> {
  const found: RunRecord[] = [];
  for await (const record of newestFirst(journal, scope)) {
    if (record.identity.run === behind || found.length === limit) return found.reverse();
    found.push(record);
  }
  return found.reverse();
}

/** Runs before the last ones that have not ended, and those that had not when the summary passed them by. */
async function openBefore(
  journal: Journal,
  scope: Scope,
  last: readonly RunRecord[],
  without: readonly string[] = [],
): Promise<readonly RunRecord[]> {
  const after = last[0]?.identity.run;
  if (after === undefined) return [];
  const open: RunRecord[] = [];
  for await (const record of newestFirst(journal, scope, { after, status: UNENDED })) {
    if (open.length === OPEN_RUNS) break;
    open.push(record);
  }
  const known = new Set([...open, ...last].map(({ identity }) => identity.run));
  const missed = new Set(without.filter((run) => !known.has(run)));
  if (missed.size === 0) return open.reverse();
  const most = open.length + missed.size;
  // Those of the summary have their places among the others by the order of the store alone.
  const found: RunRecord[] = [];
  for await (const record of newestFirst(journal, scope, { after })) {
    const { run } = record.identity;
    if (missed.delete(run) || known.has(run)) found.push(record);
    if (found.length === most) break;
  }
  return found.reverse();
}

function isTurn({ conversation, parent, erased }: RunRecord): boolean {
  return conversation !== false && parent === undefined && erased === undefined;
}

function hasEnded({ status }: RunRecord): boolean {
  return !UNENDED.includes(status);
}

type KeeperDeps = Pick<DriverDeps, 'clock' | 'redaction' | 'onFault' | 'journal' | 'artifacts'>;

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

  /** Called when a run of the session has ended. */
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
    const { journal } = this.#deps;
    for (;;) {
      const summary = await journal.memory.summary(scope);
      const due = await this.#due(scope, summary);
      if (due === undefined) return true;
      const turns = await Promise.all(
        due.runs.map(({ identity: { run }, head }) => turnsOfRun(run, head, scope, this.#deps)),
      );
      const next = await this.#extend(summary, turns.flat(), due);
      // Closed: the store may be, too.
      if (this.#abort.signal.aborted) return false;
      const stored = await journal.memory.summarise(scope, summary?.updatedAt, next);
      if (!stored) return true;
      if (next.health === 'degraded') return false;
      if (next.health === 'retrying' && !(await this.#mayRetry(next.failures))) return false;
    }
  }

  /** What the summary is to cover next; `undefined`: nothing. A session that was not kept up for long is taken in parts. */
  async #due(scope: Scope, summary: SessionSummary | undefined): Promise<Due | undefined> {
    const { journal } = this.#deps;
    const { through = '', without = [] } = summary ?? {};
    const newer = await runsAfter(journal, scope, Number.POSITIVE_INFINITY, through);
    const old = newer.slice(0, Math.max(0, newer.length - this.#window)).slice(0, 2 * this.#window);
    const left = (await Promise.all(without.map((run) => journal.get(run)))).filter((record) => record !== undefined);
    const runs = [...left, ...old].filter(hasEnded);
    if (old.length === 0 && runs.length === 0) return undefined;
    return {
      runs,
      through: old.at(-1)?.identity.run ?? through,
      without: [...left, ...old].filter((record) => !hasEnded(record)).map(({ identity }) => identity.run),
    };
  }

  /** The summary that also covers these turns; when writing it fails, the old summary with one more failure. */
  async #extend(
    old: SessionSummary | undefined,
    turns: readonly SessionTurn[],
    { through, without }: Due,
  ): Promise<SessionSummary> {
    const { clock, onFault, redaction } = this.#deps;
    const { text: before = '', failures: failed = 0 } = old ?? {};
    const updatedAt = (): number => Math.max(Math.floor(clock.now()), (old?.updatedAt ?? 0) + 1);
    try {
      const previous = before === '' ? undefined : before;
      const written =
        turns.length === 0 ? before : await this.#options.summarise({ previous, turns }, this.#abort.signal);
      const text = turns.length === 0 ? before : redaction.known(assertText(written));
      return { text, through, without, health: 'healthy', failures: 0, updatedAt: updatedAt() };
    } catch (error) {
      if (!this.#abort.signal.aborted) onFault(error);
      const failures = failed + 1;
      const health = failures < (this.#options.retries ?? DEFAULT_RETRIES) ? 'retrying' : 'degraded';
      const { through: covered = '', without: left = [] } = old ?? {};
      return { text: before, through: covered, without: left, health, failures, updatedAt: updatedAt() };
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

/** Runs that the next summary covers in addition, and how far it goes then. */
interface Due extends Pick<SessionSummary, 'through' | 'without'> {
  readonly runs: readonly RunRecord[];
}

function assertText(summary: unknown): string {
  if (typeof summary === 'string' && summary.trim() !== '') return summary.toWellFormed();
  throw new PilotageError('invalid_config', 'memory.summarise must return the summary, a string that is not empty.');
}
