/** `pilotage list` and `pilotage waiting` in a journal of several tenants. */
import { expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { temporaryFile } from '../kit/files.ts';
import { makeFolder } from './command.ts';

it('shows whose a run is, and those of one tenant or user', async () => {
  const path = temporaryFile();
  const planner = () => ({ kind: 'request_pause', reason: 'await_input' }) as const;
  const runtime = createRuntime({ planner, tools: [], journal: sqliteJournal({ path }) });
  const owners = [
    ['local', 'ana'],
    ['acme', 'bo'],
    ['acme', 'cy'],
    ['other', 'bo'],
  ] as const;
  for (const [tenant, user] of owners) {
    const run = `${tenant}-${user}`;
    await (await runtime.start('Go.', { identity: { tenant, user, session: 's', run } })).result();
  }
  await runtime.close();
  const folder = makeFolder();
  const whose = async (...args: string[]): Promise<string[]> => {
    const { stdout } = await folder.run([...args, '--journal', path]);
    return stdout
      .trim()
      .split('\n')
      .sort()
      .map((line) => line.split(/ {2,}/).at(-1) ?? '');
  };
  expect(await whose('list')).toEqual(['acme/bo', 'acme/cy', 'Go.', 'other/bo']);
  expect(await whose('list', '--tenant', 'acme')).toEqual(['acme/bo', 'acme/cy']);
  expect(await whose('list', '--user', 'bo')).toEqual(['acme/bo', 'other/bo']);
  expect(await whose('list', '--tenant', 'other', '--user', 'ana')).toEqual(['']);
  expect(await whose('waiting', '--tenant', 'acme')).toEqual(['acme/bo', 'acme/cy']);
  expect((await whose('waiting')).filter((text) => text.includes('/'))).toEqual(['acme/bo', 'acme/cy', 'other/bo']);
});
