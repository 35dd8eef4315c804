/** `--all` of `approve` and `answer`: as many answers as a run has questions, in one command. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { builtUrl } from '../kit/built.ts';
import { openJournal } from '../kit/sqlite.ts';
import { type Folder, makeFolder, runIn } from './command.ts';

const CONFIG = `
import { defineConfig } from '${builtUrl('src/config/index.ts')}';
export const config = {
  planner: ({ trajectory }) =>
    trajectory.count > 0
      ? { kind: 'finish', reason: 'goal' }
      : { kind: 'call_parallel', branches: ['a', 'b', 'c'].map((id) => ({ id, tool: 'pay', args: { id } })) },
  tools: [
    { name: 'pay', description: 'pays', inputSchema: { type: 'object' }, effect: 'once', needsApproval: true, execute: () => 'paid' },
  ],
};
export default defineConfig(config);
`;

/** The journal notes when something is said to a run, and when somebody begins to wait for what becomes of it. */
const NOTING = `
import { appendFileSync } from 'node:fs';
import { defineConfig } from '${builtUrl('src/config/index.ts')}';
import { sqliteJournal } from '${builtUrl('src/journal/sqlite.ts')}';
import { config } from './pilotage.config.ts';
const stored = sqliteJournal({ path: '.pilotage/pilotage.db' });
const journal = new Proxy(stored, {
  get(target, key) {
    const own = Reflect.get(target, key);
    if (typeof own !== 'function') return own;
    return (...given) => {
      if (key === 'signal' || key === 'watch' || key === 'inbox') appendFileSync('order.txt', key + '\\n');
      return own.apply(target, given);
    };
  },
});
export default defineConfig({ ...config, journal });
`;

async function asking(): Promise<{ readonly folder: Folder; readonly run: string }> {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  folder.write('noting.config.ts', NOTING);
  const { code, stderr } = await folder.run(['run', 'pay']);
  expect(code).toBe(5);
  return { folder, run: runIn(stderr) };
}

describe('answers to all questions of a run', () => {
  it('are stored before anybody waits for what becomes of them: the command waits once, and not once for each', async () => {
    const { folder, run } = await asking();
    const { code, stdout } = await folder.run(['approve', run, '--all', '--config', 'noting.config.ts']);
    expect([code, stdout.trim().split('\n')]).toEqual([0, Array(3).fill(expect.stringContaining('Stored'))]);
    const order = readFileSync(join(folder.path, 'order.txt'), 'utf8').split('\n');
    const said = order.filter((each) => each !== 'inbox');
    expect(said.slice(0, 4)).toEqual(['signal', 'signal', 'signal', 'watch']);
    // What became of all of them is looked up together.
    expect(order.slice(order.indexOf('watch')).filter((each) => each === 'inbox')).toHaveLength(1);
    expect((await folder.run(['resume', run])).code).toBe(0);
  });

  it('are all looked at before one is given', async () => {
    const { folder, run } = await asking();
    const { stdout } = await folder.run(['waiting', '--json']);
    const [token] = stdout.match(/(?<="token":")[^"]+/) ?? [];
    const answers = JSON.stringify({ [String(token)]: { kind: 'approve' }, x: { kind: 'maybe' } });
    const refused = await folder.run(['answer', run, '--all', answers]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('x has another') });
    expect(await openJournal(join(folder.path, '.pilotage/pilotage.db')).inbox(run)).toEqual([]);
  });
});
