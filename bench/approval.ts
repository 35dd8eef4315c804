/** A call that somebody approves at once, beside the same call without a gate. */
import { join } from 'node:path';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, type Run } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { PlannerFunction } from '#pilotage/planner';
import { type Measured, median, type Row, short, times, wallMs } from './measure.ts';
import { noteTool } from './ours.ts';
import { withScratch } from './scratch.ts';
import { TOOL_NAME } from './workload.ts';

const GATED = 'gated_note';
const WARM_UP_ROUNDS = 100;
const ROUNDS = 201;

/** Makes one call of the tool that the query names. */
const calling: PlannerFunction = ({ query, trajectory: { count } }) =>
  count === 0
    ? { kind: 'call_tool', tool: query, args: { id: 0, text: 'note' } }
    : { kind: 'finish', reason: 'goal', payload: 'Noted.' };

interface Sides {
  /** From the approval until the run has ended. */
  readonly approvalMs: number;
  /** The whole run. */
  readonly gatedMs: number;
  readonly freeMs: number;
  readonly ratio: number;
}

export async function approval(): Promise<Measured> {
  return withScratch(async (folder) => {
    const memory = await inTurns(memoryJournal());
    const file = sqliteJournal({ path: join(folder, 'approval.db') });
    const sqlite = await inTurns(file);
    await file.close();
    const row = (where: string, { approvalMs, gatedMs, freeMs, ratio }: Sides): Row => [
      `a run of one approved call, ${where}`,
      `${gatedMs} ms`,
      `${ratio} x the run without a gate, ${freeMs} ms; ${approvalMs} ms from the approval to the end`,
    ];
    return {
      keys: { approval_ms_memory: memory.approvalMs, approval_ms_sqlite: sqlite.approvalMs },
      rows: [row('in memory', memory), row('SQLite', sqlite)],
    };
  });
}

async function inTurns(journal: Journal): Promise<Sides> {
  const tools = [noteTool('read'), { ...noteTool('read'), name: GATED, needsApproval: true }];
  const runtime = createRuntime({ planner: calling, tools, journal });
  const start = (query: string): Promise<Run> => runtime.start(query, { identity: local('bench') });
  const approvals: number[] = [];
  const gated = async (): Promise<void> => {
    const run = await start(GATED);
    await assertStatus(run, 'paused');
    const goOn = async (): Promise<void> => {
      await run.approve();
      await assertStatus(run, 'finished');
    };
    approvals.push(await wallMs(goOn));
  };
  const free = async (): Promise<void> => assertStatus(await start(TOOL_NAME), 'finished');
  await times(WARM_UP_ROUNDS, async () => {
    await gated();
    await free();
  });
  approvals.length = 0;
  const gatedMs: number[] = [];
  const freeMs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    gatedMs.push(await wallMs(gated));
    freeMs.push(await wallMs(free));
  }
  await runtime.close();
  return {
    approvalMs: short(median(approvals)),
    gatedMs: short(median(gatedMs)),
    freeMs: short(median(freeMs)),
    ratio: short(median(gatedMs.map((ms, round) => ms / (freeMs[round] ?? Number.NaN)))),
  };
}

async function assertStatus(run: Run, status: 'paused' | 'finished'): Promise<void> {
  const result = await run.result();
  if (result.status !== status) throw new Error(`The run is ${result.status}, not ${status}.`);
}
