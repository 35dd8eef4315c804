/** A journal that another process holds: what carries a run through waits, and says who holds it; what says one thing gives up. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startChild } from '../journal/children.ts';
import { makeOlder } from '../kit/sqlite.ts';
import { type Folder, makeFolder, runIn } from './command.ts';

const CONFIG = `
export default {
  planner: {
    name: 'asks',
    next: ({ trajectory: { count }, query }) =>
      count === 0 && query === 'ask'
        ? { kind: 'request_pause', reason: 'await_input' }
        : { kind: 'finish', reason: 'goal', payload: 'done' },
  },
  tools: [],
};
`;

/** A folder with a run that waits for an answer. */
async function asking(): Promise<{ folder: Folder; run: string; path: string }> {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  const { code, stderr } = await folder.run(['run', 'ask']);
  expect(code).toBe(5);
  return { folder, run: runIn(stderr), path: join(folder.path, '.pilotage/pilotage.db') };
}

describe.each([
  ['the present format', () => {}],
  ['an older format', makeOlder],
] as [string, (path: string) => void][])('a journal of %s that somebody holds', { concurrent: true }, (_, prepare) => {
  it('is waited for by a run', async ({ onTestFinished }) => {
    const { folder, path } = await asking();
    prepare(path);
    const holder = startChild('holdLock', path, onTestFinished);
    expect(await holder.line()).toBe('held');
    const started = folder.start(['run', 'x']);
    await started.untilOutput(/Waiting for the journal\. Another process \(\d+\) holds the journal/);
    holder.process.stdin?.write('go\n');
    expect(await started.done).toMatchObject({ code: 0, stdout: 'done\n' });
  });

  it('refuses a message after a while, and stores nothing of it', async ({ onTestFinished }) => {
    const { folder, run, path } = await asking();
    prepare(path);
    const holder = startChild('holdLock', path, onTestFinished);
    expect(await holder.line()).toBe('held');
    const { code, stderr } = await folder.run(['send', run, 'hello']);
    expect(code).toBe(4);
    expect(stderr).toContain(`Another process (${holder.process.pid}) holds the journal`);
    expect(stderr).toContain('Nothing was written. Try again when it is done');
    holder.process.stdin?.write('go\n');
    expect(await holder.line()).toBe('free');
    const resumed = await folder.run(['resume', run, '--message', 'yes']);
    expect(resumed).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(resumed.stderr).not.toContain('hello');
  });
});

it.concurrent('an older journal that somebody holds is waited for by a resume', async ({ onTestFinished }) => {
  const { folder, run, path } = await asking();
  makeOlder(path);
  const holder = startChild('holdLock', path, onTestFinished);
  expect(await holder.line()).toBe('held');
  const started = folder.start(['resume', run, '--message', 'yes']);
  await started.untilOutput(/Waiting for the journal/);
  holder.process.stdin?.write('go\n');
  expect(await started.done).toMatchObject({ code: 0, stdout: 'done\n' });
});
