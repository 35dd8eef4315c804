/**
 * Proves that a run survives crashes: plays it once to learn every moment at which its process can die, then once for
 * each such moment, with a new process that goes on from the journal.
 *
 *     const report = await crashEverywhere({ name: 'orders', planner, query: 'Order it', tools: (world) => [order(world)] });
 *     assertCrashProof(report);
 *
 * The moments are before and after each write to the journal, each entry into a tool, each effect that a tool reports to
 * its `world`, and each return from a tool.
 */
import { AssertionError } from 'node:assert';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import {
  assertKnownKeys,
  assertOptions,
  defined,
  describeThrown,
  type Entry,
  type Identity,
  local,
  type OptionShape,
  PilotageError,
} from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type PauseNotice, type Run, type Runtime, runResultOf } from '#runtime';
import { foldEntries, isPaused, type RunState } from '#state';
import { seededRandom, VirtualClock } from '../time-and-chance.ts';
import {
  callsInDoubt,
  effectProblems,
  endingProblems,
  foldProblems,
  lostEntries,
  otherEnding,
  taskProblems,
  treeOf,
  unknownProblems,
  unseenProblems,
} from './check.ts';
import { FaultyJournal } from './faulty-journal.ts';
import { CrashProcess, mortalPlanner, mortalTools, worldOf } from './process.ts';
import { CrashRecord, callName } from './record.ts';
import { type CrashScenario, SCENARIO_KEYS } from './scenario.ts';

export interface CrashOptions {
  /** How many runs crash a second time, at random points of the recovery. Default 20. */
  readonly doubles?: number;
  /** The seed that chooses those points. Default 1. */
  readonly seed?: number;
}

export interface CrashViolation {
  /** Where the processes died; empty for the run without a crash. */
  readonly at: readonly string[];
  readonly what: string;
}

export interface CrashReport {
  readonly scenario: string;
  /** The points at which the first process was killed, one run each. */
  readonly points: readonly string[];
  /** How many runs crashed twice. */
  readonly doubles: number;
  readonly seed: number;
  readonly violations: readonly CrashViolation[];
}

const OPTIONS: OptionShape<CrashOptions> = { doubles: 'whole?', seed: 'any?' };

/** Never rejects because of a violation: the report lists them. When the run without a crash has violations, no other run is played. */
export async function crashEverywhere(scenario: CrashScenario, options: CrashOptions = {}): Promise<CrashReport> {
  assertOptions('crashEverywhere', options, OPTIONS);
  assertKnownKeys('A scenario of crashEverywhere', scenario, SCENARIO_KEYS);
  const { doubles = 20, seed = 1 } = options;
  const violations: CrashViolation[] = [];
  const points: string[] = [];
  const clean = await play(scenario, []);
  note(violations, clean);
  const reference = clean.outcome;
  if (violations.length > 0 || reference === undefined) {
    return { scenario: scenario.name, points, doubles: 0, seed, violations };
  }
  const pairs: (readonly [number, number])[] = [];
  for (const index of (clean.lives[0] ?? []).keys()) {
    const crashed = await play(scenario, [index], reference);
    note(violations, crashed);
    const [at] = crashed.deaths;
    if (at !== undefined) points.push(`${index}: ${at}`);
    for (const second of (crashed.lives[1] ?? []).keys()) pairs.push([index, second]);
  }
  const chosen = sample(pairs, doubles, seed);
  for (const pair of chosen) note(violations, await play(scenario, pair, reference));
  return { scenario: scenario.name, points, doubles: chosen.length, seed, violations };
}

/** @throws AssertionError with every violation of the reports, and when a report has no crash point. */
export function assertCrashProof(...reports: readonly CrashReport[]): void {
  const lines = reports.flatMap(({ scenario, points, violations }) => [
    ...(points.length === 0 ? [`${scenario}: no crash point was reached.`] : []),
    ...violations.map(({ at, what }) => `${scenario}, ${at.length === 0 ? 'no crash' : at.join(', then ')}: ${what}`),
  ]);
  if (lines.length > 0) throw new AssertionError({ message: lines.join('\n') });
}

function note(violations: CrashViolation[], { deaths, problems }: Played): void {
  for (const what of problems) violations.push({ at: deaths, what });
}

/** `count` different items, chosen by the seed. */
function sample<T>(items: readonly T[], count: number, seed: number): T[] {
  const random = seededRandom(seed);
  const left = [...items];
  const chosen: T[] = [];
  while (chosen.length < count && left.length > 0) {
    chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  }
  return chosen;
}

// Playing a run with crashes at given points: one process after another on the same journal, and then the verdict.

interface Played {
  /** The points that each process reached. */
  readonly lives: readonly (readonly string[])[];
  /** Where processes died. */
  readonly deaths: readonly string[];
  /** If it can be read. */
  readonly outcome: Outcome | undefined;
  readonly problems: readonly string[];
}

type States = ReadonlyMap<string, RunState>;

/** What the run and its tasks have come to, by run id. */
interface Outcome {
  readonly journals: ReadonlyMap<string, readonly Entry[]>;
  readonly states: States;
}

/** A process that carries the run, with the journal as it sees it. */
interface Life extends Play {
  readonly seen: Journal;
}

interface Play {
  readonly scenario: CrashScenario;
  readonly clock: VirtualClock;
  readonly record: CrashRecord;
  readonly identity: Identity;
  open(): Journal | Promise<Journal>;
  /** Lets go of a journal whose process is over. */
  close(journal: Journal): Promise<void>;
}

/**
 * @param dieAt for each process but the last, the index of the point at which it dies.
 * @param reference how the clean run came out; absent for the clean run itself.
 */
async function play(scenario: CrashScenario, dieAt: readonly number[], reference?: Outcome): Promise<Played> {
  const setting = stage(scenario);
  const lives: CrashProcess[] = [];
  for (const death of [...dieAt, undefined]) {
    const process = new CrashProcess(death);
    lives.push(process);
    await live(setting, process);
    if (process.alive) break;
  }
  const died = lives.filter((process) => !process.alive);
  const { outcome, problems } = await examine(setting, reference);
  return {
    lives: lives.map(({ points }) => points),
    deaths: died.map(({ points }) => points.at(-1) ?? ''),
    outcome,
    problems: [...setting.record.faults, ...problems],
  };
}

function stage(scenario: CrashScenario): Play {
  const clock = new VirtualClock();
  const record = new CrashRecord(scenario.controls ?? (() => undefined));
  const common = { scenario, clock, record, identity: local('crash', { run: 'crash' }) };
  const { journal } = scenario;
  if (journal === undefined) {
    const memory = memoryJournal({ clock });
    return { ...common, open: () => memory, close: async () => {} };
  }
  const store = `crash_${crypto.randomUUID().replaceAll('-', '')}`;
  return { ...common, open: () => journal(clock, store), close: (opened) => opened.close() };
}

/** From the start of a process to the end of the run, or to its death. */
async function live(setting: Play, process: CrashProcess): Promise<void> {
  const { scenario, clock, record } = setting;
  const journal = await setting.open();
  await inspect(setting, journal);
  const seen = new FaultyJournal(journal, process, record);
  const runtime = createRuntime({
    ...scenario.options,
    planner: mortalPlanner(scenario.planner, process, record),
    tools: mortalTools(scenario.tools(worldOf(process, record)), process, record),
    journal: seen,
    clock: process.clock(clock),
    leaseMs: LEASE_MS,
    onFault: (error) => {
      if (process.alive) record.faults.push(`The runtime reported a fault: ${describeThrown(error)}`);
    },
  });
  let over = false;
  const life = toTheEnd(runtime, { ...setting, seen }).catch((error: unknown) => {
    if (process.alive) record.faults.push(`The run could not be carried to its end: ${describeThrown(error)}`);
  });
  const isStuck = await Promise.race([life, process.died, keepTime(clock, process, () => over)]);
  over = true;
  if (isStuck === true) {
    record.faults.push('The run neither ended nor paused: nothing happened in it any more.');
    process.kill();
  }
  await process.settle();
  await setting.close(journal);
}

async function toTheEnd(runtime: Runtime, setting: Life): Promise<void> {
  const { scenario, identity, seen } = setting;
  const options = {
    ...defined({ limits: scenario.limits }),
    ...(scenario.args === undefined ? {} : { context: { args: scenario.args } }),
  };
  let run = runtime.run(identity.run);
  const state = await stateOf(run, seen);
  if (state === undefined) run = await runtime.start(scenario.query, { identity, ...options });
  else if (state.ending === null && !waitsForAnswer(state)) await run.resume();
  // Only a worker finds tasks of a run that has ended or waits for somebody, and runs that somebody outside spoke to.
  const isStill = state !== undefined && (state.ending !== null || waitsForAnswer(state));
  if (isStill || scenario.controls !== undefined) runtime.work();
  await follow(run, runtime, setting, new Set());
  await runtime.close();
}

/**
 * Until the run and its tasks have ended.
 * @param followed the runs that somebody follows.
 */
async function follow(run: Run, runtime: Runtime, setting: Life, followed: Set<string>): Promise<void> {
  followed.add(run.id);
  const answered = new Set<string>();
  const tasks: Promise<void>[] = [];
  let from = 1;
  for (let over = false; !over; ) {
    for await (const event of run.events({ from })) {
      from = Math.max(from, event.seq + 1);
      over = event.type === 'planner.finish' || event.type === 'planner.error';
      if (event.type !== 'task.spawned') continue;
      const task = follow(runtime.run(event.taskId), runtime, setting, followed);
      // A reader that follows the whole tree is told.
      task.catch(() => {});
      tasks.push(task);
    }
    if (!over) await answerAll(run, runtime, answered, setting, followed);
  }
  followed.delete(run.id);
  await Promise.all(tasks);
}

/**
 * Answers the run's own pauses. What its tasks wait for is answered where they are followed; one that had ended, and goes on to undo its calls, is
 * followed no more.
 */
async function answerAll(
  run: Run,
  runtime: Runtime,
  answered: Set<string>,
  { scenario, clock, record, seen }: Life,
  followed: ReadonlySet<string>,
): Promise<void> {
  const result = runResultOf(foldEntries(await seen.read(run.id)));
  if (result?.status !== 'paused') return;
  const answerOf = scenario.answer ?? ((_: Run, { token }: PauseNotice) => run.resume({ token }));
  let isNews = false;
  for (const pause of result.pauses) {
    const isOwn = pause.run === run.id;
    // The run hears later that a task of it has its answer.
    if (!isOwn && (followed.has(pause.run) || answered.has(pause.token))) continue;
    const asks = isOwn ? run : runtime.run(pause.run);
    if (answered.has(pause.token)) throw new Error(`the pause ${pause.token} is open after it was answered`);
    const isDoubt = pause.reason === 'in_doubt';
    const answering = isDoubt ? settle(asks, pause, record) : answerOf(asks, pause);
    if (answering === undefined) continue;
    if (!(await isTaken(answering))) continue;
    answered.add(pause.token);
    isNews = true;
  }
  if (!isNews) await new Promise<void>((resolve) => clock.after(HOP_MS, resolve));
}

/** Somebody looks at the world. What the call would have given nobody knows. */
function settle(run: Run, { token, payload, step = 0, call = 0 }: PauseNotice, record: CrashRecord): Promise<void> {
  const key = String(payload?.['key']);
  const happened = (record.effects.get(key) ?? 0) > 0;
  record.settled({ key, happened, id: callName(run.id, step, call) });
  return run.settle(token, { happened });
}

const TOO_LATE = ['pause_not_found', 'superseded', 'run_ended'] as const;

/** A person who answers does not know whether an answer before the crash arrived, and gives it again. */
async function isTaken(answering: Promise<void>): Promise<boolean> {
  try {
    await answering;
    return true;
  } catch (error) {
    if (!TOO_LATE.some((code) => PilotageError.is(error, code))) throw error;
    return false;
  }
}

async function stateOf({ id }: Run, seen: Journal): Promise<RunState | undefined> {
  try {
    return foldEntries(await seen.read(id));
  } catch (error) {
    if (PilotageError.is(error, 'run_not_found')) return undefined;
    throw error;
  }
}

/** Whether the run waits for an answer of its own. A run that only waits for tasks goes on when they do. */
function waitsForAnswer(state: RunState): boolean {
  return state.pauses.length > 0 && isPaused(state);
}

/** What a new process finds: all that was acknowledged, and `once` calls that a dead process had begun and not ended. */
async function inspect({ record }: Play, journal: Journal): Promise<void> {
  for (const run of record.runs) {
    try {
      const entries = (await journal.get(run)) === undefined ? [] : await journal.read(run);
      record.faults.push(...lostEntries(record.acknowledged(run), entries));
      const open = entries.length === 0 ? null : foldEntries(entries).open;
      for (const { call, once } of open?.began ?? []) {
        // A call that may be made again keeps its key, however it ends.
        if (once && open?.calls[call] === null) record.interrupted.add(callName(run, open.move.step, call));
      }
    } catch (error) {
      record.faults.push(`The journal cannot be read after a crash: ${describeThrown(error)}`);
    }
  }
}

const LEASE_MS = 300;
const HOP_MS = 100;
const HOP_WHILE_BUSY_MS = 5;
const QUIET_TURNS = 4;
/** A store behind a network may take longer for an answer than a lease lasts in this time: the time waits for it, a second or so. */
const MOST_HOPS_FOR_STORE = 200;
const STUCK_AFTER_MS = 2 * 60_000;

/**
 * Moves time on whenever the process only waits for the clock; slowly while a tool, the planner or the store is at work.
 * True when no point has been reached for two minutes of that time.
 */
async function keepTime(clock: VirtualClock, process: CrashProcess, isOver: () => boolean): Promise<boolean> {
  let reached = 0;
  let since = clock.now();
  let hops = 0;
  while (!isOver()) {
    const { activity } = process;
    for (let quiet = 0; quiet < QUIET_TURNS && process.activity === activity; quiet += 1) await turn();
    if (process.activity === activity && process.busy) await sleep(HOP_WHILE_BUSY_MS);
    hops = process.activity === activity ? hops + 1 : 0;
    if (process.activity !== activity || isOver()) continue;
    if (process.asksStore && hops < MOST_HOPS_FOR_STORE) continue;
    if (process.points.length > reached) {
      reached = process.points.length;
      since = clock.now();
    }
    if (clock.now() - since > STUCK_AFTER_MS) return true;
    clock.advance(HOP_MS);
  }
  return false;
}

async function examine(
  setting: Play,
  reference: Outcome | undefined,
): Promise<{ outcome: Outcome | undefined; problems: readonly string[] }> {
  const { record, identity } = setting;
  const journal = await setting.open();
  try {
    const stored = await treeOf(journal, identity.run);
    const runs = [...new Set([...stored, ...record.runs])];
    const journals = new Map<string, readonly Entry[]>();
    for (const run of runs) journals.set(run, await journal.read(run));
    const problems = runs.flatMap((run) => lostEntries(record.acknowledged(run), journals.get(run) ?? []));
    const unreadable = [...journals].flatMap(([run, entries]) => foldProblems(entries, reference?.journals.get(run)));
    if (unreadable.length > 0) return { outcome: undefined, problems: [...problems, ...unreadable] };
    const states = new Map([...journals].map(([run, entries]) => [run, foldEntries(entries)]));
    for (const run of runs) problems.push(...endingProblems(journals.get(run) ?? [], await journal.get(run)));
    problems.push(...problemsOf(setting, journals, states, reference?.states ?? states));
    return { outcome: { journals, states }, problems };
  } catch (error) {
    return { outcome: undefined, problems: [`The journal cannot be read at the end: ${describeThrown(error)}`] };
  } finally {
    await setting.close(journal);
  }
}

function problemsOf(
  { scenario, record, identity }: Play,
  journals: ReadonlyMap<string, readonly Entry[]>,
  states: States,
  reference: States,
): string[] {
  const tree = [...states.values()];
  const problems: string[] = [];
  const isUnsure =
    record.settlements.some(({ happened }) => happened) ||
    tree.some((state) => callsInDoubt(state).length > unknownIn(reference, state));
  for (const [run, state] of states) {
    const clean = reference.get(run);
    problems.push(...effectProblems(record, state), ...taskProblems(journals.get(run) ?? [], state, tree));
    if (clean === undefined) {
      if (!isUnsure) problems.push(`The clean run had no task ${run}.`);
      continue;
    }
    problems.push(...unknownProblems(record, state, clean), ...unseenProblems(record, state, clean));
    if (!isUnsure) problems.push(...otherEnding(state, clean));
  }
  const first = states.get(identity.run);
  if (first !== undefined) problems.push(...(scenario.check?.(first, journals.get(identity.run) ?? [], tree) ?? []));
  return problems;
}

function unknownIn(reference: States, { identity }: RunState): number {
  const clean = reference.get(identity.run);
  return clean === undefined ? 0 : callsInDoubt(clean).length;
}
