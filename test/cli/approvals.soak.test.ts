/** Pauses that somebody answers from another process: approvals, of the run's own calls and of its tasks'. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PauseNotice } from '#runtime';
import { foldEntries } from '#state';
import { type Folder, runIn } from './command.ts';
import { journalIn, operatedFolder } from './operated.ts';

/** What was paid, a line each. */
function paid(folder: Folder): string {
  const path = join(folder.path, 'paid.txt');
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** A run that has stopped because it waits. */
async function paused(folder: Folder, query: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stderr } = await folder.run(['run', query], env);
  expect({ code, stderr }).toMatchObject({ code: 5 });
  return runIn(stderr);
}

/** The tokens of a run's open pauses, in the order in which they were asked for. */
async function tokensOf(folder: Folder, run: string): Promise<readonly string[]> {
  return journalIn(folder, async (journal) => foldEntries(await journal.read(run)).pauses.map(({ token }) => token));
}

describe('two processes and a third', () => {
  it('one starts a run and is killed, one approves with other arguments, one finishes it: it is paid once', async () => {
    const folder = operatedFolder();
    const a = folder.start(['run', 'pay and hold', '--json']);
    await a.untilOutput(/"pause.requested"[\s\S]*"tool.approval_requested"/);
    while (!existsSync(join(folder.path, 'held.txt'))) await new Promise((resolve) => setImmediate(resolve));
    a.child.kill('SIGKILL');
    const run = runIn((await a.done).stdout);
    expect(paid(folder)).toBe('');

    const b = await folder.run(['approve', run, '--args', '{"amount": 90}', '--reason', 'half of it']);
    expect(b).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Stored; nobody drives the run now\./) });
    expect(paid(folder)).toBe('');

    folder.write('go', '');
    const c = await folder.run(['resume', run]);
    expect(c).toMatchObject({ code: 0, stdout: '[{"paid":90},"held"]\n' });
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: c.stdout });
    expect(paid(folder)).toBe('90\n');
    const { stdout } = await folder.run(['inspect', run]);
    expect(stdout).toContain('‖ paused: approval_required  pay {"amount":100} (it is money)');
    expect(stdout).toContain('▶ approve (approval_required)  with {"amount":90}  “half of it”');
    expect(stdout).toContain('✓ pay  {"amount":90}');
  });
});

describe('pilotage approve and reject', () => {
  it('answers a call while its sibling is under way, and tells what was refused', async () => {
    const folder = operatedFolder();
    const live = folder.start(['run', 'pay and hold', '--json']);
    await live.untilOutput(/"tool.approval_requested"/);
    const run = await journalIn(folder, async (journal) => (await journal.list({}))[0]?.identity.run ?? '');
    const misfit = await folder.run(['approve', run, '--args', '{"amount": "much"}']);
    expect(misfit).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('payload_invalid') });
    expect(misfit.stderr).not.toContain('much');
    expect(await folder.run(['approve', run, '--args', '{"amount":90}'])).toEqual({
      code: 0,
      stdout: `Approved: ${run}.\n`,
      stderr: '',
    });
    const twice = await folder.run(['approve', run]);
    expect(twice).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('pause_not_found') });
    folder.write('go', '');
    expect(await live.done).toMatchObject({ code: 0 });
    expect(paid(folder)).toBe('90\n');
  });

  it('SP-26, SP-27 an unknown token is refused; of two answers that are stored the first one wins', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    const unknown = await folder.run(['approve', run, '--token', 'pause_of_another']);
    expect(unknown).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('(pause_not_found)') });
    expect(await journalIn(folder, (journal) => journal.inbox(run))).toEqual([]);
    expect((await folder.run(['reject', run, '--reason', 'too much'])).code).toBe(0);
    const second = await folder.run(['approve', run]);
    expect(second).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('stored already (REJECT)') });
    const resumed = await folder.run(['resume', run]);
    expect(resumed).toMatchObject({ code: 0, stdout: '["tool_rejected"]\n' });
    expect(resumed.stderr).toContain('▶ reject (approval_required)  “too much”');
    expect(paid(folder)).toBe('');
    expect((await folder.run(['approve', run])).code).toBe(6);
  });

  it('SP-44 refuses an answer to what has expired when it is given, and resume goes on without one', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay', { EXPIRES_IN_MS: '1500' });
    const [pause] = await journalIn(folder, async (journal) => foldEntries(await journal.read(run)).pauses);
    const expiresAt = pause?.expiresAt ?? 0;
    while (Date.now() < expiresAt) await new Promise((resolve) => setImmediate(resolve));
    for (const command of ['approve', 'reject']) {
      const late = await folder.run([command, run]);
      expect(late).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('(pause_expired)') });
      expect(late.stderr).toContain(`expired at ${new Date(expiresAt).toISOString()}`);
    }
    const told = await folder.run(['resume', run, '--message', 'go on']);
    expect(told).toMatchObject({ code: 6, stderr: expect.stringContaining('pause_expired') });
    expect(await journalIn(folder, (journal) => journal.inbox(run))).toEqual([]);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: '["approval_timeout"]\n' });
    expect(paid(folder)).toBe('');
    expect((await folder.run(['inspect', run])).stdout).not.toContain('control ');
  });

  it('refuses a kind that does not fit, and an answer to what a stored redirect has withdrawn, with nobody driving', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    const [token = ''] = await tokensOf(folder, run);
    const words = await folder.run(['answer', run, '--token', token, '--payload', '{"a":1}']);
    expect(words).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('approve, reject, answer') });
    expect((await folder.run(['redirect', run, 'other'])).code).toBe(0);
    for (const command of ['approve', 'reject']) {
      const late = await folder.run([command, run, '--token', token]);
      expect(late).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('(superseded)') });
    }
    const stored = await journalIn(folder, (journal) => journal.inbox(run));
    expect(stored.map(({ message }) => message.type)).toEqual(['REDIRECT']);
  });

  it('says how to answer wherever a paused run is shown, and resume alone is no answer', async () => {
    const folder = operatedFolder();
    const { stdout, stderr } = await folder.run(['run', 'pay']);
    expect(stdout).toBe('');
    const run = runIn(stderr);
    const [token] = await tokensOf(folder, run);
    const shown = [
      'The run waits for approval: pay {"amount":100} (it is money)',
      `  token    ${token}`,
      `  yes      pilotage approve ${run}`,
      `  no       pilotage reject ${run}`,
    ].join('\n');
    expect(stderr).toContain(shown);
    expect(await folder.run(['resume', run])).toEqual({ code: 5, stdout: '', stderr: `${shown}\n` });
    expect((await folder.run(['inspect', run])).stdout).toContain('The run waits for approval: pay');
    const limits = await folder.run(['resume', run, '--max-steps', '9']);
    expect(limits).toMatchObject({ code: 2, stderr: expect.stringContaining('between two steps') });
    expect((await folder.run(['approve', run])).code).toBe(0);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: '[{"paid":100}]\n' });
  });

  it.each([
    ['resume --message', (run: string) => [['resume', run, '--message', 'how much is it?']]],
    [
      'send',
      (run: string) => [
        ['send', run, 'how much is it?'],
        ['resume', run],
      ],
    ],
    [
      'redirect',
      (run: string) => [
        ['redirect', run, 'do not pay'],
        ['resume', run],
      ],
    ],
  ])('a question is withdrawn by %s; whoever approves later is told so, and nothing is paid', async (_, commands) => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    const [token] = await tokensOf(folder, run);
    const said = [];
    for (const command of commands(run)) said.push(await folder.run(command));
    expect(said.at(-1)).toMatchObject({ code: 0, stderr: expect.stringContaining('superseded (approval_required)') });
    const late = await folder.run(['approve', run, '--token', String(token)]);
    expect(late).toMatchObject({ code: 6, stderr: expect.stringContaining('superseded') });
    expect(paid(folder)).toBe('');
  });

  it('a value in place of the call is its outcome, and several pauses are answered at once', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    expect(await folder.run(['answer', run])).toMatchObject({ code: 2, stderr: expect.stringContaining('--value') });
    expect((await folder.run(['answer', run, '--value', '{"paid": 7}', '--reason', 'by hand'])).code).toBe(0);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: '[{"paid":7}]\n' });
    const twice = await paused(folder, 'pay twice');
    const [one, two] = await tokensOf(folder, twice);
    const all = { [String(one)]: { kind: 'approve' }, [String(two)]: { kind: 'reject', reason: 'no' } };
    expect((await folder.run(['answer', twice, '--all', JSON.stringify(all)])).code).toBe(0);
    expect((await folder.run(['resume', twice])).code).toBe(0);
    expect((await folder.run(['inspect', twice])).stdout).toMatch(/approve[\s\S]*reject/);
    const wrong = await folder.run(['answer', twice, '--all', '{"x": {"kind": "maybe"}}']);
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('approve, reject, answer, payload, settle'),
    });
    const words = await paused(folder, 'pay');
    const unfit = await folder.run(['approve', words, '--payload', '{"note": 1}']);
    expect(unfit).toMatchObject({ code: 6, stderr: expect.stringContaining('approve, reject, answer') });
  });

  it('an approval that is stored after a new goal comes too late, before anybody has taken either', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    expect((await folder.run(['redirect', run, 'do not pay'])).code).toBe(0);
    const late = await folder.run(['approve', run]);
    expect(late).toMatchObject({ code: 6, stderr: expect.stringContaining(' was withdrawn by REDIRECT') });
    await folder.run(['resume', run]);
    expect((await folder.run(['inspect', run])).stdout).toContain('control REDIRECT');
    expect(paid(folder)).toBe('');
  });

  it('several open pauses are listed, and answered by their tokens in any order, also in part', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay twice');
    const [first = '', second = ''] = await tokensOf(folder, run);
    const which = await folder.run(['approve', run]);
    expect(which).toMatchObject({ code: 2, stdout: '' });
    for (const token of [first, second]) expect(which.stderr).toContain(`approve ${run} --token ${token}\n`);
    const asJson = await folder.run(['reject', run, '--json']);
    expect(asJson).toMatchObject({ code: 2, stderr: '' });
    const { pauses } = JSON.parse(asJson.stdout) as { pauses: readonly PauseNotice[] };
    expect(pauses.map(({ token, payload }) => [token, payload?.['args']])).toEqual([
      [first, { amount: 1 }],
      [second, { amount: 2 }],
    ]);
    expect((await folder.run(['approve', run, '--token', second])).code).toBe(0);
    const half = await folder.run(['resume', run]);
    expect(half).toMatchObject({ code: 5, stdout: '' });
    expect(half.stderr).toMatch(/✓ pay[\s\S]*The run waits for approval: pay {"amount":1}/);
    expect(paid(folder)).toBe('2\n');
    expect((await folder.run(['reject', run, '--token', first])).code).toBe(0);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: '["tool_rejected",{"paid":2}]\n' });
    expect(paid(folder)).toBe('2\n');
  });

  it('SP-25, ID-03 a foreign user cannot answer, and nobody approves what they asked for if another has to', async () => {
    const folder = operatedFolder();
    const env = { APPROVER: 'another' };
    const run = await paused(folder, 'pay', env);
    const foreign = await folder.run(['approve', run, '--as', 'mallory']);
    expect(foreign).toMatchObject({ code: 6, stdout: '', stderr: expect.stringContaining('(scope_mismatch)') });
    const owner = await journalIn(folder, async (journal) => (await journal.get(run))?.identity.user ?? '');
    expect((await folder.run(['approve', run, '--as', owner])).code).toBe(0);
    const refused = await folder.run(['resume', run], env);
    expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining('another person has to') });
    expect(paid(folder)).toBe('');
    expect((await folder.run(['approve', run, '--as', 'bo', '--admin'])).code).toBe(0);
    expect(await folder.run(['resume', run], env)).toMatchObject({ code: 0, stdout: '[{"paid":100}]\n' });
    expect((await folder.run(['inspect', run])).stdout).toContain('▶ approve (approval_required) by bo (admin)');
  });

  it("answers a task's pause through the run above it", async () => {
    const folder = operatedFolder();
    const shown = await folder.run(['run', 'task pay']);
    const run = runIn(shown.stderr);
    const task = `${run}.0.0`;
    expect(shown.code).toBe(5);
    expect(shown.stderr).toContain(`The task ${task} waits for approval: pay {"amount":100} (it is money)`);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 5, stderr: expect.stringContaining(task) });
    const approved = await folder.run(['approve', run, '--args', '{"amount":7}', '--json']);
    expect(JSON.parse(approved.stdout)).toMatchObject({ run, task, state: 'stored' });
    const resumed = await folder.run(['resume', run]);
    expect(resumed.code).toBe(0);
    expect(resumed.stdout).toContain('{"paid":7}');
    expect(paid(folder)).toBe('7\n');
    const { stdout } = await folder.run(['inspect', run]);
    expect(stdout).toContain(`tasks    ${task}  foreground, complete, 1 step: a task\n`);
  });

  it('an answer to a run that waits for words is none without them', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'ask');
    expect((await folder.run(['resume', run])).stderr).toContain(`resume ${run} --message '…'`);
    const answered = await folder.run(['resume', run, '--message', 'the red one', '--payload', '{"sure":true}']);
    expect(answered).toMatchObject({ code: 0, stdout: expect.stringContaining('"sure":true') });
    expect(answered.stdout).toContain('the red one');
  });
});

describe('pilotage settle', () => {
  /** A run, and a task, whose process dies when it has paid. */
  async function cutOff(folder: Folder, query: string): Promise<string> {
    const run = await paused(folder, query);
    expect(await folder.run(['settle', run, '--happened'])).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('Nothing is in doubt'),
    });
    await folder.run(['approve', run]);
    await folder.start(['resume', run], { DIES: 'pay' }).done;
    const { code, stderr } = await folder.run(['resume', run]);
    expect(code).toBe(5);
    expect(stderr).toContain('nobody knows whether this call has happened: pay {"amount":100}');
    expect(stderr).toContain(`settle ${run} --did-not-happen`);
    return run;
  }

  it('says that it happened: it is not paid again, also when the run is resumed without a word', async () => {
    const folder = operatedFolder();
    const run = await cutOff(folder, 'pay');
    expect(await folder.run(['resume', run])).toMatchObject({ code: 5 });
    expect(await folder.run(['settle', run])).toMatchObject({ code: 2, stderr: expect.stringContaining('--happened') });
    const both = await folder.run(['settle', run, '--happened', '--did-not-happen']);
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('not both') });
    const wrong = await folder.run(['approve', run]);
    expect(wrong).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('say with settle whether it has happened'),
    });
    expect(await folder.run(['settle', run, '--happened', '--value', '{"paid":100}', '--json'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"control":"SETTLE","state":"stored"'),
    });
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: '[{"paid":100}]\n' });
    expect(paid(folder)).toBe('100\n');
    const { stdout } = await folder.run(['inspect', run]);
    expect(stdout).toContain('▶ settled: it happened (in_doubt)');
  });

  it('says that it did not: it is paid, of a task through the run above it', async () => {
    const folder = operatedFolder();
    const run = await cutOff(folder, 'task pay');
    expect((await folder.run(['settle', run, '--did-not-happen', '--reason', 'not in the books'])).code).toBe(0);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0 });
    expect(paid(folder)).toBe('100\n100\n');
  });
});
