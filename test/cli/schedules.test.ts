/** `pilotage schedules`, and runs that are started for later and found by their labels. */
import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../kit/files.ts';
import { makeFolder } from './command.ts';

describe('schedules on the command line', () => {
  it('are put, shown, paused, resumed, triggered and deleted', async () => {
    const folder = makeFolder();
    const journal = temporaryFile();
    const schedules = (...args: string[]) => folder.run(['schedules', ...args, '--journal', journal]);
    const put = await schedules(
      'put',
      'nightly',
      'Survey this folder',
      '--cron',
      '0 3 * * *',
      '--timezone',
      'Europe/Berlin',
      '--label',
      'of=ops',
    );
    expect(put).toMatchObject({ code: 0 });
    expect(put.stdout).toMatch(/^nightly +0 3 \* \* \* Europe\/Berlin +\d{4}-\S+Z +Survey this folder\n$/);
    expect((await schedules('put', 'often', 'Look', '--every', '3600', '--overlap', 'queue')).code).toBe(0);
    expect((await schedules('list')).stdout.split('\n')).toHaveLength(3);
    expect((await schedules('pause', 'nightly')).stdout).toMatch(/paused/);
    expect(JSON.parse((await schedules('show', 'nightly')).stdout)).toMatchObject({
      status: 'paused',
      labels: { of: 'ops' },
      catchUp: 'last',
    });
    expect((await schedules('resume', 'nightly')).stdout).not.toMatch(/paused/);
    const triggered = await schedules('trigger', 'nightly');
    expect(triggered.code, triggered.stderr).toBe(0);
    const listed = await folder.run([
      'list',
      '--schedule',
      'nightly',
      '--label',
      'of=ops',
      '--text',
      'SURVEY',
      '--since',
      '1h',
      '--journal',
      journal,
    ]);
    expect(listed.stdout).toMatch(/^schedule_nightly_\S+ +finished .*Survey this folder {2}of=ops\n$/);
    expect((await schedules('delete', 'nightly')).code).toBe(0);
    expect((await schedules('delete', 'nightly')).code).toBe(2);
  });

  it('a run begins at its time, which the list shows', async () => {
    const folder = makeFolder();
    const journal = temporaryFile();
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const run = await folder.run(['run', 'Survey this folder', '--at', at, '--label', 'a=b=c', '--journal', journal]);
    expect(run.code, run.stderr).toBe(0);
    const { stdout } = await folder.run(['list', '--label', 'a=b=c', '--status', 'pending', '--journal', journal]);
    expect(stdout).toContain(`begins ${at}`);
    expect((await folder.run(['list', '--label', 'a=b', '--journal', journal])).stderr).toContain('No runs.');
  });

  it.each([
    [['schedules'], 'one of list, show, put'],
    [['schedules', 'put', 'x'], 'an id and what its runs work for'],
    [['schedules', 'put', 'x', 'q'], 'either cron'],
    [['schedules', 'put', 'x', 'q', '--every', '60', '--overlap', 'wait'], '--overlap takes skip, queue, parallel'],
    [['list', '--label', 'order'], 'such as --label order=17'],
    [['list', '--since', 'yesterday'], '--since takes a time with its zone'],
    [['run', 'q', '--at', '2027-01-01'], '--at takes a time with its zone'],
  ])('%j is wrong', async (args, message) => {
    const { code, stderr } = await makeFolder().run(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
