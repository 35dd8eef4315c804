/** What is said to a run from another process: while it lives, while it waits, and with nobody driving it. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Folder, runIn, type Started } from './command.ts';
import { journalIn, operatedFolder } from './operated.ts';

/** A run that goes round until it is told something, and the process that drives it. */
async function looping(folder: Folder, query: string = 'loop'): Promise<{ live: Started; run: string }> {
  const live = folder.start(['run', query, '--json']);
  await live.untilOutput(query === 'loop' ? /"tool.completed"/ : /"task.spawned"/);
  const run = await journalIn(folder, async (journal) => (await journal.list({})).at(-1)?.identity.run ?? '');
  return { live, run };
}

const GO_ON = 'Stored; nobody drives the run now. Go on with: pilotage resume';

describe('while another process may have the run', () => {
  it('resume says whose it is, and goes on when nothing was heard of it for the rest of its lease', async () => {
    const folder = operatedFolder();
    const first = await folder.run(['run', 'ask']);
    const run = runIn(first.stderr);
    const claim = await journalIn(folder, (journal) => journal.claim({ run, owner: 'elsewhere:7:x', leaseMs: 3_000 }));
    expect(claim).toBeDefined();
    const { code, stderr } = await folder.run(['resume', run, '--message', 'the first']);
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^The run is with process 7 on elsewhere, which may still be alive\. If nothing is heard of it for [123] s, /,
    );
  });
});

describe('a key that this process knows', () => {
  it('is not stored with what is said to a run', async () => {
    const folder = operatedFolder();
    const run = runIn((await folder.run(['run', 'ask'])).stderr);
    const key = 'zq9-said-from-a-terminal-7431';
    await folder.run(['send', run, `use ${key}`], { SOME_SERVICE_TOKEN: key });
    const inbox = await journalIn(folder, (journal) => journal.inbox(run));
    expect(JSON.stringify(inbox)).toContain('use [redacted:secret]');
  });
});

describe('while a process drives the run', () => {
  it.each([
    ['send', 'be quick', 'Delivered', 'heard be quick'],
    ['redirect', 'the moon', 'Redirected', 'reached the moon'],
  ])('%s is applied, and says so', async (command, text, done, answer) => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder);
    expect(await folder.run([command, run, text])).toEqual({ code: 0, stdout: `${done}: ${run}.\n`, stderr: '' });
    const { code, stdout } = await live.done;
    expect(code).toBe(0);
    expect(stdout).toContain(`"payload":"${answer}"`);
  });

  it('cancel ends it, and the process that drives it', async () => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder);
    const cancelled = await folder.run(['cancel', run, '--reason', 'too dear', '--json']);
    expect(cancelled).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(cancelled.stdout)).toEqual({ run, control: 'CANCEL', state: 'applied' });
    const { code, stdout } = await live.done;
    expect(code).toBe(1);
    expect(stdout).toMatch(/"reason":"cancelled".*"reason":"too dear"/);
    const late = await folder.run(['send', run, 'hello']);
    expect(late).toEqual({ code: 6, stdout: '', stderr: expect.stringMatching(/^Refused: .*\(run_ended\)\n$/) });
  });

  it('pause stops it; what is said then is kept until it is resumed', async () => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder);
    expect(await folder.run(['pause', run])).toMatchObject({ code: 0, stdout: `Paused: ${run}.\n` });
    expect((await live.done).code).toBe(5);
    const sent = await folder.run(['send', run, 'be quick', '--as', await ownerOf(folder, run)]);
    expect(sent).toMatchObject({ code: 0, stdout: `${GO_ON} ${run}\n` });
    expect((await folder.run(['inspect', run])).stdout).toMatch(/inbox {4}USER_MESSAGE by \S+, not taken yet\n/);
    const resumed = await folder.run(['resume', run]);
    expect(resumed).toMatchObject({ code: 0, stdout: 'heard be quick\n' });
    // What was received and what became of it is one line.
    expect(resumed.stderr.match(/control USER_MESSAGE/g)).toHaveLength(1);
  });
});

describe('while the run waits for a task', () => {
  it('cancel is stored, and resume carries it out, also for the task that another process drives', async () => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder, 'task loop');
    await journalIn(folder, async (journal) => {
      while ((await journal.get(run))?.status !== 'waiting') await new Promise((resolve) => setImmediate(resolve));
    });
    const waiting = await folder.run(['list', '--status', 'waiting']);
    expect(runIn(waiting.stdout)).toBe(run);
    expect(await folder.run(['cancel', run])).toMatchObject({ code: 0, stdout: `${GO_ON} ${run}\n` });
    expect(await folder.run(['resume', run])).toMatchObject({ code: 1 });
    expect((await live.done).code).toBe(1);
    const task = (await folder.run(['list', '--parent', run, '--json'])).stdout;
    expect(JSON.parse(task)).toMatchObject({ identity: { run: `${run}.0.0` }, parent: run });
    expect(await folder.run(['resume', `${run}.0.0`])).toMatchObject({ code: 1 });
    const inspected = await folder.run(['inspect', `${run}.0.0`]);
    expect(inspected.stdout).toContain('finished: cancelled\n');
    expect(inspected.stdout).toContain(`task of  ${run}: a task\n`);
  });
});

describe('with nobody driving the run', () => {
  it('cancel, redirect and pause are stored, and taken in order', async () => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder);
    live.child.kill('SIGKILL');
    await live.done;
    // The process is gone, and its lease is not over: it is not waited for.
    expect(await folder.run(['redirect', run, 'the moon'])).toMatchObject({ code: 0, stdout: `${GO_ON} ${run}\n` });
    expect(await folder.run(['pause', run])).toMatchObject({ code: 0, stdout: `${GO_ON} ${run}\n` });
    const soft = await folder.run(['cancel', run, '--soft', '--json']);
    expect(JSON.parse(soft.stdout)).toEqual({
      run,
      control: 'CANCEL',
      state: 'stored',
      next: `pilotage resume ${run}`,
    });
    const resumed = await folder.run(['resume', run]);
    expect(resumed.code).toBe(1);
    expect(resumed.stderr).toMatch(
      /control REDIRECT[\s\S]*control PAUSE[\s\S]*control CANCEL[\s\S]*finished: cancelled/,
    );
  });

  it('a pause that nobody has taken is answered by resume', async () => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder);
    live.child.kill('SIGKILL');
    await live.done;
    await folder.run(['pause', run]);
    await folder.run(['send', run, 'be quick']);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: 'heard be quick\n' });
  });
});

describe('one call', () => {
  it('is cancelled by its place, and the run goes on', async () => {
    const folder = operatedFolder();
    await folder.run(['run', 'pay twice', '--json']);
    const run = await journalIn(folder, async (journal) => (await journal.list({}))[0]?.identity.run ?? '');
    const cancelled = await folder.run(['cancel', run, '--call', '1.2', '--reason', 'not that one']);
    expect(cancelled).toMatchObject({ code: 0, stdout: `${GO_ON} ${run}\n` });
    const other = await folder.run(['cancel', run, '--call', '4.1', '--json']);
    expect(other).toMatchObject({ code: 6, stderr: '' });
    expect(JSON.parse(other.stdout)).toMatchObject({ control: 'CANCEL_CALL', error: { code: 'call_not_found' } });
    expect((await folder.run(['cancel', run, '--call', '1.1', '--soft'])).code).toBe(2);
    expect((await folder.run(['resume', run])).code).toBe(5);
    expect(await folder.run(['approve', run])).toMatchObject({ code: 0 });
    const { stdout } = await folder.run(['resume', run]);
    expect(stdout).toContain('cancelled');
    const inspected = await folder.run(['inspect', run]);
    expect(inspected.stdout).toContain('control CANCEL_CALL');
    expect(inspected.stdout).toContain('not that one');
    const late = await folder.run(['cancel', run, '--call', '1.1']);
    expect(late).toMatchObject({ code: 6, stderr: expect.stringContaining('(run_ended)') });
  });
});

describe('who speaks', () => {
  it('SP-25, ID-03 a user of another run is refused, and nothing is stored; an admin is recorded', async () => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder);
    live.child.kill('SIGKILL');
    await live.done;
    const foreign = await folder.run(['cancel', run, '--as', 'mallory']);
    expect(foreign).toEqual({ code: 6, stdout: '', stderr: expect.stringContaining('(scope_mismatch)') });
    const asJson = await folder.run(['send', run, 'hi', '--as', 'mallory', '--json']);
    expect(asJson).toMatchObject({ code: 6, stderr: '' });
    expect(JSON.parse(asJson.stdout)).toMatchObject({ state: 'refused', error: { code: 'scope_mismatch' } });
    expect(await journalIn(folder, (journal) => journal.inbox(run))).toEqual([]);
    expect(await folder.run(['cancel', run, '--as', 'root-of-it-all', '--admin'])).toMatchObject({ code: 0 });
    expect((await folder.run(['resume', run])).code).toBe(1);
    expect((await folder.run(['inspect', run])).stdout).toContain('control CANCEL by root-of-it-all (admin)\n');
  });

  it('takes a message of any length, and says what it does not find', async () => {
    const folder = operatedFolder();
    const { live, run } = await looping(folder);
    live.child.kill('SIGKILL');
    await live.done;
    expect(await folder.run(['send', run, 'x'.repeat(32_768)])).toMatchObject({ code: 0 });
    const [stored] = await journalIn(folder, (journal) => journal.inbox(run));
    expect(stored?.message).toMatchObject({ type: 'USER_MESSAGE', stored: { mime: 'application/json' } });
    expect(await folder.run(['send', 'run_x', 'hi'])).toMatchObject({ code: 2, stdout: '' });
  });

  it('needs a journal, and makes none', async () => {
    const folder = operatedFolder();
    expect(await folder.run(['approve', 'run_x'])).toMatchObject({ code: 4, stdout: '' });
    expect(existsSync(join(folder.path, 'kept'))).toBe(false);
    expect(readdirSync(folder.path)).toEqual(['pilotage.config.ts']);
  });
});

async function ownerOf(folder: Folder, run: string): Promise<string> {
  return journalIn(folder, async (journal) => (await journal.get(run))?.identity.user ?? '');
}
