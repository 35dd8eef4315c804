/** How long another process takes to open what one has left: to its result and its state, and to the end of another turn. */
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, type Run, type Runtime } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import { median, type Row, short, wallMs } from './measure.ts';
import { noteTool } from './ours.ts';
import { TOOL_NAME } from './workload.ts';

export const ENTRIES = 100_000;
const ROUNDS = 5;

/** A run that has made a call at every step, and waits for its user. */
export async function longRun(path: string): Promise<string> {
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

export function toolRuntime(journal: Journal): Runtime {
  const planner = {
    name: 'notes',
    next: ({ trajectory: { count } }: { readonly trajectory: { readonly count: number } }) =>
      count < ENTRIES / 2
        ? ({ kind: 'call_tool', tool: TOOL_NAME, args: { id: count, text: `note ${count}` } } as const)
        : ({ kind: 'request_pause', reason: 'await_input' } as const),
  };
  return createRuntime({ planner, tools: [noteTool('read')], journal });
}

export async function resumeOnce(run: Run): Promise<void> {
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

export async function opening(
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

export function openRow(what: string, { openMs, turnMs, foldMs }: Opening): Row {
  return [
    `${what}, opened elsewhere`,
    `${openMs} ms`,
    `at most 50; ${turnMs} ms to the end of another turn, ${foldMs} ms without a snapshot`,
  ];
}
