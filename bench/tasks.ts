/** Background tasks of a run, from their start to their results in it, beside the same runs started by hand. */
import { join } from 'node:path';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, type Runtime } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { PlannerFunction } from '#pilotage/planner';
import { type Measured, median, type Row, short, times, wallMs } from './measure.ts';
import { noteTool } from './ours.ts';
import { withScratch } from './scratch.ts';
import { TOOL_NAME } from './workload.ts';

/** The most that a run may have under way. */
const TASKS = 16;
const WARM_UP_ROUNDS = 10;
const ROUNDS = 31;
const WORK = 'Take a note.';
const GROUP = 'notes';

/** A run of this query takes one note; any other spawns such runs as tasks, and waits for all of them. */
const delegating: PlannerFunction = ({ identity, query, trajectory: { count } }) => {
  if (query === WORK) {
    return count === 0
      ? { kind: 'call_tool', tool: TOOL_NAME, args: { id: 0, text: 'note' } }
      : { kind: 'finish', reason: 'goal', payload: 'Noted.' };
  }
  if (count === 0) {
    const args = {
      kind: 'background',
      group_id: GROUP,
      spec: { description: 'A note', query: WORK, limits: { steps: 2 } },
    };
    return { kind: 'call_parallel', branches: Array.from({ length: TASKS }, () => ({ tool: '_spawn_task', args })) };
  }
  if (count === 1) return { kind: 'await_task', taskId: `${identity.run}.0.0`, groupId: GROUP };
  return { kind: 'finish', reason: 'goal' };
};

interface Sides {
  /** Milliseconds a task, the run that they are tasks of included. */
  readonly taskMs: number;
  /** Milliseconds a run started by hand. */
  readonly byHandMs: number;
  readonly ratio: number;
}

export async function tasks(): Promise<Measured> {
  return withScratch(async (folder) => {
    const memory = await inTurns(memoryJournal());
    const file = sqliteJournal({ path: join(folder, 'tasks.db') });
    const sqlite = await inTurns(file);
    await file.close();
    const row = (where: string, { taskMs, byHandMs, ratio }: Sides): Row => [
      `a background task, ${TASKS} of a run, ${where}`,
      `${taskMs} ms`,
      `${ratio} x a run started by hand, ${byHandMs} ms, ${TASKS} at once`,
    ];
    return {
      keys: { task_ratio_memory: memory.ratio, task_ratio_sqlite: sqlite.ratio },
      rows: [row('in memory', memory), row('SQLite', sqlite)],
    };
  });
}

async function inTurns(journal: Journal): Promise<Sides> {
  const runtime = createRuntime({ planner: delegating, tools: [noteTool('read')], journal });
  const delegate = (): Promise<void> => runToEnd(runtime, 'Have notes taken.');
  const byHand = async (): Promise<void> => {
    await Promise.all(Array.from({ length: TASKS }, () => runToEnd(runtime, WORK)));
  };
  await times(WARM_UP_ROUNDS, async () => {
    await delegate();
    await byHand();
  });
  const tasksMs: number[] = [];
  const handsMs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    tasksMs.push(await wallMs(delegate));
    handsMs.push(await wallMs(byHand));
  }
  await runtime.close();
  return {
    taskMs: short(median(tasksMs) / TASKS),
    byHandMs: short(median(handsMs) / TASKS),
    ratio: short(median(tasksMs.map((ms, round) => ms / (handsMs[round] ?? Number.NaN)))),
  };
}

async function runToEnd(runtime: Runtime, query: string): Promise<void> {
  const run = await runtime.start(query, { identity: local('bench'), limits: { steps: 100 } });
  const result = await run.result();
  if (result.status !== 'finished' || result.reason !== 'goal') {
    throw new Error(`The run for '${query}' went wrong: ${JSON.stringify(result)}`);
  }
}
