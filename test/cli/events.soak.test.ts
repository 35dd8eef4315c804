/** `pilotage events`: what happens in a run that other processes carry out. */
import { describe, expect, it } from 'vitest';
import { journalIn, operatedFolder } from './operated.ts';

interface Told {
  readonly type: string;
  readonly seq: number;
}
const jsonIn = (stdout: string): Told[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Told);

describe('the events of a run', () => {
  it('are shown as they come, over a pause, from a process that died, from the next one, and the run ends the command', async () => {
    const folder = operatedFolder();
    await folder.run(['run', 'pay', '--json']);
    const run = await journalIn(folder, async (journal) => (await journal.list({}))[0]?.identity.run ?? '');
    const followed = folder.start(['events', run, '--follow']);
    await followed.untilOutput(/paused: approval_required/);
    await folder.run(['approve', run]);
    // Its process dies when it has paid.
    const dying = folder.start(['resume', run], { DIES: 'pay' });
    await followed.untilOutput(/approve \(approval_required\)/);
    expect((await dying.done).code).toBe(null);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 5 });
    await followed.untilOutput(/paused: in_doubt/);
    await folder.run(['settle', run, '--happened', '--value', '{"paid":5}']);
    await folder.run(['resume', run]);
    const { code, stdout, stderr } = await followed.done;
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z {2}▶ /);
    expect(stdout.trim().split('\n').at(-1)).toMatch(/■ finished: goal$/);

    const whole = jsonIn((await folder.run(['events', run, '--json'])).stdout);
    const rest = jsonIn((await folder.run(['events', run, '--json', '--from', '4'])).stdout);
    expect(rest).toEqual(whole.filter(({ seq }) => seq >= 4));
    expect((await folder.run(['inspect', run, '--json'])).stdout).toBe(
      (await folder.run(['events', run, '--json'])).stdout,
    );
    expect(await folder.run(['events', 'nobody'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('run_not_found'),
    });
  });

  it('have those of tasks between them, each with its task, and say how what is open is answered, before and while it is asked', async () => {
    const folder = operatedFolder();
    await folder.run(['run', 'task pay', '--json']);
    const [run = '', task = ''] = await journalIn(folder, async (journal) =>
      (await journal.list({})).map(({ identity }) => identity.run).sort((one, other) => one.length - other.length),
    );
    const plain = (await folder.run(['events', run])).stdout;
    expect(plain).toMatch(new RegExp(`The task ${task} waits for approval: pay.*\\n[^]*yes .* approve ${run}`));
    expect(plain).not.toMatch(/step \d {2}pay/);
    const { stdout } = await folder.run(['events', run, '--tasks']);
    const lines = stdout.split('\n').map((line) => line.slice(26));
    expect(lines.filter((line) => line.startsWith(`task ${task}  `))).toEqual([
      expect.stringContaining(`▶ ${task}`),
      expect.stringContaining('● step 1  pay'),
      expect.stringContaining('‖ paused: approval_required  pay'),
    ]);
    expect(lines.some((line) => line.startsWith('● step 1'))).toBe(true);
    const told = jsonIn((await folder.run(['events', run, '--tasks', '--json'])).stdout);
    const runs = told.map((event) => (event as Told & { identity: { run: string } }).identity.run);
    expect([...new Set(runs)].sort()).toEqual([run, task].sort());

    const followed = folder.start(['events', run, '--follow', '--tasks']);
    await followed.untilOutput(/yes .* approve run_/);
    await folder.run(['approve', run]);
    await folder.run(['resume', run]);
    const ended = await followed.done;
    expect([ended.code, ended.stdout.match(/yes .* approve/g)?.length]).toEqual([0, 1]);
  });
});
