/** A folder with a configuration whose runs are operated: what a run does, its query says. */
import { join } from 'node:path';
import type { Journal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { builtUrl } from '../kit/built.ts';
import { type Folder, makeFolder } from './command.ts';

const CONFIG_FACE = builtUrl('src/config/index.ts');
const DETERMINISTIC = builtUrl('src/planners/deterministic/index.ts');

/**
 * Queries: `pay` (asks before), `pay and hold` (the second call lasts until there is a file `go`), `pay twice`, `ask`,
 * `loop` (until it is told something, or to reach something else), `task <query>` and `background <query>`.
 * VERSION, and of the tool `pay` DIGEST and EXPIRES_IN_MS, are read from the environment.
 */
const CONFIG = `
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { defineConfig } from '${CONFIG_FACE}';
import { lastStep } from '${DETERMINISTIC}';

const pay = {
  name: 'pay',
  description: 'Pays ' + (process.env.CURRENCY ?? ''),
  inputSchema: {
    type: 'object',
    properties: { amount: { type: process.env.AMOUNT ?? 'number' } },
    required: ['amount'],
  },
  needsApproval: {
    reason: 'it is money',
    ...(process.env.APPROVER ? { approver: process.env.APPROVER } : {}),
    ...(process.env.APPROVALS ? { approvals: Number(process.env.APPROVALS) } : {}),
    ...(process.env.EXPIRES_IN_MS ? { expiresInMs: Number(process.env.EXPIRES_IN_MS) } : {}),
  },
  execute: ({ amount }) => {
    appendFileSync('paid.txt', amount + '\\n');
    if (process.env.DIES === 'pay') process.kill(process.pid, 'SIGKILL');
    return { paid: amount };
  },
};
const hold = {
  name: 'hold',
  description: 'Waits for a file.',
  inputSchema: { type: 'object' },
  effect: 'read',
  execute: async (_, { signal }) => {
    appendFileSync('held.txt', 'x');
    while (!existsSync('go')) await after(20, undefined, { signal });
    return 'held';
  },
};
const tick = {
  name: 'tick',
  description: 'A moment.',
  inputSchema: { type: 'object' },
  effect: 'read',
  execute: () => after(40, null),
};

const call = (tool, args = {}) => ({ kind: 'call_tool', tool, args });
const all = (...branches) => ({ kind: 'call_parallel', branches });
const finish = (payload) => ({ kind: 'finish', reason: 'goal', payload });

function decide(run) {
  const { steps, steering, count } = run.trajectory;
  const said = steering.map(({ control }) => control.payload?.message).filter((text) => text !== undefined);
  if (run.goal !== run.query) return finish('reached ' + run.goal);
  const outcomes = steps.at(-1)?.calls.map(({ outcome }) => outcome) ?? [];
  const report = () => finish([...said, ...outcomes.map((outcome) => outcome.error?.code ?? outcome.value ?? outcome)]);
  const [word, ...rest] = run.query.split(' ');
  if (word === 'loop') return said.length > 0 ? finish('heard ' + said.join()) : call('tick');
  if (count > 0) return report();
  if (word === 'task' || word === 'background') {
    const spec = { description: 'a task', query: rest.join(' ') };
    const task = { kind: 'spawn_task', task: word === 'task' ? 'foreground' : word, spec };
    return task;
  }
  switch (run.query) {
    case 'pay':
      return call('pay', { amount: 100 });
    case 'pay and hold':
      return all({ tool: 'pay', args: { amount: 100 } }, { tool: 'hold', args: {} });
    case 'pay twice':
      return all({ tool: 'pay', args: { amount: 1 } }, { tool: 'pay', args: { amount: 2 } });
    case 'ask':
      return { kind: 'request_pause', reason: 'await_input', payload: { question: 'Which one?' } };
    default:
      return finish('nothing to do');
  }
}

export default defineConfig({
  planner: { name: 'operated', version: process.env.VERSION ?? '1', next: decide },
  tools: [pay, hold, tick],
  limits: { steps: 500 },
  journal: 'kept/runs.db',
});
`;

export function operatedFolder(): Folder {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  return folder;
}

/** What the journal of the folder has now. */
export async function journalIn<T>(folder: Folder, look: (journal: Journal) => Promise<T>): Promise<T> {
  const journal = sqliteJournal({ path: join(folder.path, 'kept/runs.db') });
  try {
    return await look(journal);
  } finally {
    await journal.close();
  }
}
