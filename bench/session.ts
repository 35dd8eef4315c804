/**
 * A conversation without end: what its 10,000th turn costs beside the hundredth, and how long another process takes to open it. A turn
 * goes from the message to its answer; the model answers at once, and requests are compacted, so that it is sent about the same at every
 * turn. The growth is of CPU, which hears less of what else the machine does.
 */
import { join } from 'node:path';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, type Run, type Runtime } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import { type Measured, median, type Row, short, wallMs } from './measure.ts';
import { noteTool } from './ours.ts';
import { withScratch } from './scratch.ts';
import { chatRuntime, startChat, takeTurn } from './session-turns.ts';
import { TOOL_NAME } from './workload.ts';

const TURNS = 10_000;
const HUNDREDTH = 100;
/** So many turns around the hundredth, and the last ones: each window has several compactions. */
const WINDOW = 100;
const WARM_UP_CHATS = 4;
const WARM_UP_TURNS = 150;
const ENTRIES = 100_000;
const ROUNDS = 9;

export async function session(): Promise<Measured> {
  return withScratch(async (folder) => {
    const inMemory = await growth(memoryJournal());
    const path = join(folder, 'chat.db');
    const durable = await growth(sqliteJournal({ path, synchronous: 'normal' }));
    const tools = join(folder, 'tools.db');
    const opened = await opening(tools, await longRun(tools), toolRuntime, resumeOnce);
    const chat = await opening(path, durable.run, chatRuntime, (run) => takeTurn(run, TURNS + 1));
    return {
      keys: {
        turn_growth_10000: { memory: inMemory.growth, sqlite: durable.growth },
        turn_ms_100: { memory: inMemory.early, sqlite: durable.early },
        turn_ms_10000: { memory: inMemory.late, sqlite: durable.late },
        open_100k_entries_ms: opened.openMs,
        go_on_100k_entries_ms: opened.turnMs,
        fold_100k_entries_ms: opened.foldMs,
        open_chat_10000_ms: chat.openMs,
        go_on_chat_10000_ms: chat.turnMs,
      },
      rows: [
        growthRow('in memory', inMemory),
        growthRow('on SQLite, synchronous = NORMAL', durable),
        openRow(`a run of ${ENTRIES.toLocaleString('en')} entries`, opened),
        openRow(`a conversation of ${TURNS.toLocaleString('en')} turns`, chat),
      ],
    };
  });
}

interface Growth {
  readonly run: string;
  readonly early: number;
  readonly late: number;
  readonly growth: number;
}

/**
 * The last turns of a long conversation take turns with those around the hundredth of another: a slow moment of the machine meets both. What only
 * some turns cost, such as a summary or a snapshot, is part of it.
 */
async function growth(journal: Journal): Promise<Growth> {
  const runtime = chatRuntime(journal);
  for (let chat = 0; chat < WARM_UP_CHATS; chat += 1) await chatOf(runtime, WARM_UP_TURNS);
  const long = await chatOf(runtime, TURNS - WINDOW);
  const early: number[] = [];
  const late: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const young = await chatOf(runtime, HUNDREDTH - WINDOW / 2);
    for (let turn = 0; turn < WINDOW; turn += 1) {
      early.push(await cpuMs(() => takeTurn(young, HUNDREDTH + turn)));
      late.push(await cpuMs(() => takeTurn(long, TURNS + turn)));
    }
  }
  await runtime.close();
  await journal.close();
  const [earlyMs, lateMs] = [mean(early), mean(late)];
  return { run: long.id, early: short(earlyMs), late: short(lateMs), growth: short(lateMs / earlyMs) };
}

async function chatOf(runtime: Runtime, turns: number): Promise<Run> {
  const run = await startChat(runtime);
  for (let turn = 1; turn <= turns; turn += 1) await takeTurn(run, turn);
  return run;
}

async function cpuMs(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function growthRow(where: string, { early, late, growth }: Growth): Row {
  const note = `at most 1.5; the 10,000th takes ${late} ms of CPU, the hundredth ${early} ms`;
  return [`a turn of a conversation ${where}, the 10,000th over the hundredth`, String(growth), note];
}

/** A run that has made a call at every step, and waits for its user. */
async function longRun(path: string): Promise<string> {
  const journal = sqliteJournal({ path, synchronous: 'normal' });
  const runtime = toolRuntime(journal);
  const run = await runtime.start('Make very many notes.', { identity: local('bench'), limits: { steps: ENTRIES } });
  await run.result();
  const { head } = await run.state();
  if (head < ENTRIES) throw new Error(`The run has ${head} entries.`);
  await runtime.close();
  await journal.close();
  return run.id;
}

function toolRuntime(journal: Journal): Runtime {
  const planner = {
    name: 'notes',
    next: ({ trajectory: { count } }: { readonly trajectory: { readonly count: number } }) =>
      count < ENTRIES / 2
        ? ({ kind: 'call_tool', tool: TOOL_NAME, args: { id: count, text: `note ${count}` } } as const)
        : ({ kind: 'request_pause', reason: 'await_input' } as const),
  };
  return createRuntime({ planner, tools: [noteTool('read')], journal });
}

async function resumeOnce(run: Run): Promise<void> {
  await run.steer('USER_MESSAGE', { message: 'Go on.' });
  await run.result();
}

interface Opening {
  /** From nothing to the run's result and its state. */
  readonly openMs: number;
  /** From nothing to the end of another turn. */
  readonly turnMs: number;
  /** The same as `openMs`, without a snapshot. */
  readonly foldMs: number;
}

async function opening(
  path: string,
  id: string,
  runtimeOn: (journal: Journal) => Runtime,
  turn: (run: Run) => Promise<void>,
): Promise<Opening> {
  const timed = async (work: (run: Run) => Promise<unknown>, snapshots: boolean): Promise<number> => {
    const passedMs: number[] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      let close = async (): Promise<void> => {};
      const ms = await wallMs(async () => {
        const stored = sqliteJournal({ path, synchronous: 'normal' });
        const journal = snapshots ? stored : withoutSnapshots(stored);
        const runtime = runtimeOn(journal);
        close = async () => {
          await runtime.close();
          await stored.close();
        };
        await work(runtime.run(id));
      });
      await close();
      if (round > 0) passedMs.push(ms);
    }
    return short(median(passedMs));
  };
  const look = async (run: Run): Promise<void> => {
    const { status } = await run.result();
    const { head } = await run.state();
    if (status !== 'paused' || head === 0) throw new Error('The run was not opened as it was.');
  };
  const openMs = await timed(look, true);
  const turnMs = await timed(turn, true);
  return { openMs, turnMs, foldMs: await timed(look, false) };
}

/** As a journal of before, which has none. */
function withoutSnapshots(journal: Journal): Journal {
  const snapshots: Journal['snapshots'] = {
    newest: async () => undefined,
    keep: async () => false,
    forget: async () => {},
  };
  return new Proxy(journal, {
    get: (target, key) => {
      if (key === 'snapshots') return snapshots;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function openRow(what: string, { openMs, turnMs, foldMs }: Opening): Row {
  return [
    `${what}, opened elsewhere`,
    `${openMs} ms`,
    `at most 50; ${turnMs} ms to the end of another turn, ${foldMs} ms without a snapshot`,
  ];
}
