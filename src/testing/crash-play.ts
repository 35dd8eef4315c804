/** One run with crashes at given points: the processes one after another on the same journal, and then the verdict. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import type { Entry } from '../core/entry.ts';
import { describeThrown, PilotageError } from '../core/errors.ts';
import { type Identity, local } from '../core/identity.ts';
import { memoryJournal } from '../journal/memory.ts';
import type { Journal } from '../journal/port.ts';
import type { PauseNotice } from '../runtime/result.ts';
import type { Run } from '../runtime/run.ts';
import { createRuntime, type Runtime } from '../runtime/runtime.ts';
import { foldEntries, type RunState } from '../view/run-state.ts';
import { mortalPlanner, mortalTool, worldOf } from './crash-actors.ts';
import {
  effectProblems,
  endingProblems,
  foldProblems,
  lostEntries,
  otherEnding,
  unknownProblems,
} from './crash-check.ts';
import { CrashProcess } from './crash-process.ts';
import { CrashRecord } from './crash-record.ts';
import type { CrashScenario } from './crash-scenario.ts';
import { FaultyJournal } from './faulty-journal.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface Played {
  /** The points that each process reached. */
  readonly lives: readonly (readonly string[])[];
  /** Where processes died. */
  readonly deaths: readonly string[];
  /** The run's state at the end, if it can be read. */
  readonly state: RunState | undefined;
  readonly problems: readonly string[];
}

interface Play {
  readonly scenario: CrashScenario;
  readonly clock: VirtualClock;
  readonly record: CrashRecord;
  readonly identity: Identity;
  open(): Journal;
  /** Lets go of a journal whose process is over. */
  close(journal: Journal): Promise<void>;
}

/**
 * @param dieAt for each process but the last, the index of the point at which it dies.
 * @param reference how the clean run came out; absent for the clean run itself.
 */
export async function play(scenario: CrashScenario, dieAt: readonly number[], reference?: RunState): Promise<Played> {
  const setting = stage(scenario);
  const lives: CrashProcess[] = [];
  for (const death of [...dieAt, undefined]) {
    const process = new CrashProcess(death);
    lives.push(process);
    await live(setting, process);
    if (process.alive) break;
  }
  const died = lives.filter((process) => !process.alive);
  const { state, problems } = await examine(setting, reference);
  return {
    lives: lives.map(({ points }) => points),
    deaths: died.map(({ points }) => points.at(-1) ?? ''),
    state,
    problems: [...setting.record.faults, ...problems],
  };
}

function stage(scenario: CrashScenario): Play {
  const clock = new VirtualClock();
  const record = new CrashRecord(scenario.controls ?? (() => undefined));
  const common = { scenario, clock, record, identity: local('crash') };
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
  const journal = setting.open();
  await inspect(setting, journal);
  const runtime = createRuntime({
    planner: mortalPlanner(scenario.planner, process, record),
    tools: scenario.tools(worldOf(process, record)).map((tool) => mortalTool(tool, process, record)),
    journal: new FaultyJournal(journal, process, record),
    clock: process.clock(clock),
    leaseMs: LEASE_MS,
    onFault: (error) => {
      if (process.alive) record.faults.push(`The runtime reported a fault: ${describeThrown(error)}`);
    },
  });
  let over = false;
  const life = toTheEnd(runtime, setting).catch((error: unknown) => {
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

async function toTheEnd(runtime: Runtime, { scenario, identity }: Play): Promise<void> {
  const limits = scenario.limits === undefined ? {} : { limits: scenario.limits };
  const answered = new Set<string>();
  let run = runtime.run(identity.run);
  if (await isStored(run)) {
    const { ending, pauses } = await run.state();
    if (ending === null && pauses.length === 0) await run.resume();
  } else {
    run = await runtime.start(scenario.query, { identity, ...limits });
  }
  for (let result = await run.result(); result.status === 'paused'; result = await run.result()) {
    for (const pause of result.pauses) {
      if (answered.has(pause.token)) throw new Error(`the pause ${pause.token} is open after it was answered`);
      answered.add(pause.token);
      await answer(scenario, run, pause);
    }
  }
  await runtime.close();
}

async function isStored(run: Run): Promise<boolean> {
  try {
    await run.state();
    return true;
  } catch (error) {
    if (PilotageError.is(error, 'run_not_found')) return false;
    throw error;
  }
}

/** Whoever answers does not know whether an answer before the crash arrived, and gives it again. */
async function answer(scenario: CrashScenario, run: Run, pause: PauseNotice): Promise<void> {
  try {
    await (scenario.answer?.(run, pause) ?? run.resume({ token: pause.token }));
  } catch (error) {
    if (!PilotageError.is(error, 'pause_not_found') && !PilotageError.is(error, 'run_ended')) throw error;
  }
}

/** What a new process finds: all that was acknowledged, and calls that a dead process had begun and not ended. */
async function inspect({ record, identity }: Play, journal: Journal): Promise<void> {
  try {
    if ((await journal.get(identity.run)) === undefined) {
      record.faults.push(...lostEntries(record.acknowledged, []));
      return;
    }
    const entries = await journal.read(identity.run);
    record.faults.push(...lostEntries(record.acknowledged, entries));
    const { open } = foldEntries(entries);
    for (const call of open?.began ?? []) {
      if (open?.calls[call] === null) record.interrupted.add(`${open.move.step}.${call}`);
    }
  } catch (error) {
    record.faults.push(`The journal cannot be read after a crash: ${describeThrown(error)}`);
  }
}

const LEASE_MS = 300;
const HOP_MS = 100;
const HOP_WHILE_BUSY_MS = 5;
const QUIET_TURNS = 4;
const STUCK_AFTER_MS = 2 * 60_000;

/**
 * Moves time on whenever the process only waits for the clock; slowly while a tool, the planner or the store is at work.
 * True when no point has been reached for two minutes of that time.
 */
async function keepTime(clock: VirtualClock, process: CrashProcess, isOver: () => boolean): Promise<boolean> {
  let reached = 0;
  let since = clock.now();
  while (!isOver()) {
    const { activity } = process;
    for (let quiet = 0; quiet < QUIET_TURNS && process.activity === activity; quiet += 1) await turn();
    if (process.activity === activity && process.busy) await sleep(HOP_WHILE_BUSY_MS);
    if (process.activity !== activity || isOver()) continue;
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
  reference: RunState | undefined,
): Promise<{ state: RunState | undefined; problems: string[] }> {
  const { scenario, record, identity } = setting;
  const journal = setting.open();
  try {
    const entries = await journal.read(identity.run);
    const problems = lostEntries(record.acknowledged, entries);
    const unreadable = foldProblems(entries);
    if (unreadable.length > 0) return { state: undefined, problems: [...problems, ...unreadable] };
    const state = foldEntries(entries);
    problems.push(...endingProblems(entries, await journal.get(identity.run)), ...effectProblems(record, state));
    problems.push(
      ...unknownProblems(record, state, reference ?? state),
      ...otherEnding(record, state, reference ?? state),
    );
    problems.push(...(scenario.check?.(state, entries as readonly Entry[]) ?? []));
    return { state, problems };
  } catch (error) {
    return { state: undefined, problems: [`The journal cannot be read at the end: ${describeThrown(error)}`] };
  } finally {
    await setting.close(journal);
  }
}
