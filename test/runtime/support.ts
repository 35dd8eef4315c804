/** A runtime on a journal in memory and a clock that stands still, with what tests need to look inside. */
import type { Control } from '../../src/core/control.ts';
import type { Branch, Decision, Join } from '../../src/core/decision.ts';
import type { Entry, EntryKind } from '../../src/core/entry.ts';
import type { EventType, RunEvent } from '../../src/core/event.ts';
import { type Identity, local } from '../../src/core/identity.ts';
import type { Json } from '../../src/core/json.ts';
import { observe, observeBranches } from '../../src/core/observation.ts';
import type { PlannerFunction, RunView } from '../../src/core/planner.ts';
import type { Step } from '../../src/core/step.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import type { Journal } from '../../src/journal/port.ts';
import type { PauseNotice } from '../../src/runtime/result.ts';
import type { Run } from '../../src/runtime/run.ts';
import { createRuntime, type Runtime, type RuntimeOptions } from '../../src/runtime/runtime.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import type { Tool, ToolContext } from '../../src/tools/tool.ts';
import type { RunState } from '../../src/view/run-state.ts';

export interface World {
  readonly runtime: Runtime;
  readonly journal: Journal;
  readonly clock: VirtualClock;
  /** What was told to `onFault`. */
  readonly faults: unknown[];
}

export type WorldOptions = Omit<RuntimeOptions, 'journal' | 'clock' | 'onFault'> & {
  readonly journal?: Journal;
  readonly clock?: VirtualClock;
};

export function world(options: WorldOptions): World {
  const clock = options.clock ?? new VirtualClock();
  const journal = options.journal ?? memoryJournal({ clock });
  const faults: unknown[] = [];
  const room = { maxLiveRuns: 1_000, maxLiveRunsPerTenant: 1_000 };
  // Scripts are functions of all kinds of names; to the journal they are one planner.
  const { planner: given } = options;
  const planner = typeof given === 'function' ? { name: 'function', next: given } : given;
  const runtime = createRuntime({
    ...room,
    ...options,
    planner,
    journal,
    clock,
    onFault: (error) => faults.push(error),
  });
  return { runtime, journal, clock, faults };
}

/** Starts a run of the user `ana`. */
export function start(
  { runtime }: { readonly runtime: Runtime },
  options: Partial<Omit<Parameters<Runtime['start']>[1], 'identity'>> & { identity?: Identity; query?: string } = {},
): Promise<Run> {
  const { query = 'q', identity = local('ana'), ...rest } = options;
  return runtime.start(query, { identity, ...rest });
}

/** Decides what the script says for each step; after its end it finishes. */
export function script(...decisions: readonly Decision[]): PlannerFunction {
  return (run) => decisions[run.trajectory.count] ?? finish('done');
}

export function finish(payload?: Json): Decision {
  return payload === undefined ? { kind: 'finish', reason: 'goal' } : { kind: 'finish', reason: 'goal', payload };
}

export function call(tool: string, args: Json = {}): Decision {
  return { kind: 'call_tool', tool, args };
}

export const pause: Decision = { kind: 'request_pause', reason: 'await_input' };

/** Takes any object. */
export const ANY = { type: 'object' } as const;

export type Runs = (args: Record<string, Json>, context: ToolContext) => unknown;

export function make(name: string, run: Runs, more: Partial<Tool> = {}): Tool {
  return { name, description: name, input: ANY, effect: 'pure', run, ...more } as Tool;
}

/** A tool that gives back its arguments. */
export const echo: Tool = make('echo', (args) => args);

export interface Gate<T = void> {
  readonly opened: Promise<T>;
  open(value: T): void;
}

export function gate<T = void>(): Gate<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { opened: promise, open: resolve };
}

/** Rejects when the signal aborts: what a well-behaved tool waits for. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Turns of the event loop until the condition holds. A condition that never does is found by the test's time limit. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await turn();
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Enough turns for everything that can go on without a gate or the clock. */
export async function quiet(): Promise<void> {
  for (let count = 0; count < 25; count += 1) await turn();
}

/** Moves the clock on, step by step, until the condition holds. */
export async function advanceUntil(clock: VirtualClock, holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await quiet();
    if (!(await holds())) clock.advance(250);
  }
}

export async function kindsOf(journal: Journal, run: Run): Promise<EntryKind[]> {
  return (await journal.read(run.id)).map((entry) => entry.kind);
}

export async function entriesOf<K extends EntryKind>(
  journal: Journal,
  run: Run,
  kind: K,
): Promise<Extract<Entry, { kind: K }>[]> {
  const entries = await journal.read(run.id);
  return entries.filter((entry): entry is Extract<Entry, { kind: K }> => entry.kind === kind);
}

/** What the run waits for somebody to answer, once it is paused. */
export async function pausesOf(run: Pick<Run, 'result'>): Promise<readonly PauseNotice[]> {
  const result = await run.result();
  if (result.status !== 'paused') throw new Error(`The run is not paused: ${JSON.stringify(result)}`);
  return result.pauses;
}

export async function collect(run: Run, options: { from?: number } = {}): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run.events(options)) events.push(event);
  return events;
}

export function only<T extends EventType>(events: readonly RunEvent[], type: T): Extract<RunEvent, { type: T }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);
}

/** What the planner is told of each step. */
export function observations(state: Pick<RunState, 'steps'>): Json[] {
  return state.steps.map(observe);
}

/** The kinds of the outcomes of a step, in branch order. */
export function outcomes(state: Pick<RunState, 'steps'>, step = 0): string[] {
  return state.steps[step]?.calls.map((record) => record.outcome.kind) ?? [];
}

/** What each call id of a step is answered with: `value`, or the error's code. */
export function answersOf(step: Step | undefined): Record<string, string> {
  const answers = step === undefined ? [] : observeBranches(step);
  return Object.fromEntries(
    answers.map((answer) => [answer.call_id ?? '', 'value' in answer ? 'value' : answer.error.code]),
  );
}

/** Notes every view that the planner was given. */
export function watched(planner: PlannerFunction): PlannerFunction & { readonly views: RunView[] } {
  const views: RunView[] = [];
  return Object.assign(
    (run: RunView, signal: AbortSignal) => {
      views.push(run);
      return planner(run, signal);
    },
    { views },
  );
}

/** A journal of which some methods are replaced. */
export function changed(journal: Journal, changes: Partial<Journal>): Journal {
  return new Proxy(journal, {
    get(target, key) {
      const own: unknown = Reflect.get(changes, key) ?? Reflect.get(target, key);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
}

export interface Cut {
  readonly journal: Journal;
  /** From now on the process that uses this journal is as good as dead: it writes and hears nothing more. */
  cut(): void;
}

/** What a process that dies, or is stopped, sees of a journal that others go on using. */
export function cutJournal(journal: Journal): Cut {
  let isCut = false;
  const never = new Promise<never>(() => {});
  return {
    cut: () => {
      isCut = true;
    },
    journal: new Proxy(journal, {
      get(target, key) {
        const own: unknown = Reflect.get(target, key);
        if (typeof own !== 'function') return own;
        return (...args: unknown[]) => (isCut && key !== 'watch' ? never : own.apply(target, args));
      },
    }),
  };
}

/** The branches of a call, by the names of their tools. */
export const named = (...tools: string[]): Branch[] => tools.map((tool) => ({ tool, args: {} }));

export function parallel(
  branches: readonly Branch[],
  more: { join?: Join; onInvalid?: 'fail_all' | 'per_branch' } = {},
): Decision {
  return { kind: 'call_parallel', branches, ...more };
}

/** The first entry of a run that nobody has begun. */
export function startedEntry(run: string, at: number): Entry {
  const identity = local('ana', { run });
  return { kind: 'started', seq: 1, at, identity, query: 'q', planner: 'function', limits: {}, scopes: [] };
}

export interface Holding {
  readonly tool: Tool;
  readonly entered: Promise<void>;
  release(): void;
  /** How often it was called. */
  runs(): number;
}

/** A tool that waits until it is released. */
export function holding(): Holding {
  const entered = gate();
  const held = gate();
  let runs = 0;
  const tool = make('hold', async (_, { signal }) => {
    runs += 1;
    entered.open();
    await Promise.race([held.opened, aborted(signal)]);
    return `run ${runs}`;
  });
  return { tool, entered: entered.opened, release: () => held.open(), runs: () => runs };
}

export interface Busy extends World {
  readonly run: Run;
  readonly planner: ReturnType<typeof watched>;
  /** Lets the first call end. */
  go(): void;
}

/** A run that is inside its first tool call until `go`. */
export async function busy(): Promise<Busy> {
  const { tool, entered, release } = holding();
  const planner = watched(script(call('hold'), call('echo')));
  const made = world({ planner, tools: [echo, tool] });
  const run = await start(made);
  await entered;
  return { run, planner, go: release, ...made };
}

/** Puts a control into the inbox as another process would: nobody here is told. */
export function send(journal: Journal, run: Run, control: Control): Promise<boolean> {
  return journal.signal(run.id, control);
}
