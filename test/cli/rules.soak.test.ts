/** Rules and approvals of several people, from the command line: in processes of their own. */
import { describe, expect, it } from 'vitest';
import { foldEntries } from '#state';
import { type Folder, runIn } from './command.ts';
import { journalIn, operatedFolder } from './operated.ts';

async function paused(folder: Folder, query: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stderr } = await folder.run(['run', query], env);
  expect({ code, stderr }).toMatchObject({ code: 5 });
  return runIn(stderr);
}

async function userOf(folder: Folder, run: string): Promise<string> {
  return journalIn(folder, async (journal) => foldEntries(await journal.read(run)).identity.user);
}

describe('pilotage approve --remember', () => {
  it('holds in the next process; rules lists it and takes it back', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    const user = await userOf(folder, run);
    expect((await folder.run(['approve', run, '--remember', 'user', '--match', 'tool', '--as', user])).code).toBe(0);
    expect((await folder.run(['resume', run])).code).toBe(0);
    const next = await folder.run(['run', 'pay']);
    expect(next).toMatchObject({ code: 0, stdout: '[{"paid":100}]\n' });
    expect(next.stderr).toContain(`pay approved by rule:${run}:`);
    const inspected = await folder.run(['inspect', run]);
    expect(inspected.stdout).toContain('▶ remembered: rule:');

    const listed = await folder.run(['rules', 'list']);
    expect(listed.stdout).toContain(`approve pay with any arguments, for this user  (${user}, `);
    const [rule] = (await folder.run(['rules', 'list', '--json'])).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rule).toMatchObject({ tool: 'pay', scope: 'user', match: 'tool', by: { user } });
    expect(await folder.run(['rules', 'revoke', rule.id])).toMatchObject({ code: 0 });
    expect((await folder.run(['rules', 'revoke', rule.id])).code).toBe(2);
    expect((await folder.run(['rules', 'list'])).stderr).toContain('has no rules');
    await paused(folder, 'pay');
  });

  it('holds for arguments that fit a schema, and for a while', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    const user = await userOf(folder, run);
    const upTo = (most: number) => JSON.stringify({ properties: { amount: { maximum: most } } });
    const flags = ['--remember', 'user', '--remember-for', '3600', '--as', user];
    expect((await folder.run(['approve', run, '--match', upTo(100), ...flags])).code).toBe(0);
    expect((await folder.run(['resume', run])).code).toBe(0);
    const { stdout } = await folder.run(['rules', 'list']);
    expect(stdout).toMatch(/approve pay with arguments like .*"maximum":100.*, for this user, until 20/);
    expect((await folder.run(['run', 'pay'])).stderr).toContain(`pay approved by rule:${run}:`);
  });

  it('of the run alone is shown by inspect, and revoked with it', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay twice');
    expect((await folder.run(['approve', run, '--all', '--remember', 'run'])).code).toBe(0);
    expect((await folder.run(['resume', run])).code).toBe(0);
    expect((await folder.run(['inspect', run])).stdout).toMatch(
      /^rules {4}rule:.* approve pay with the same arguments/m,
    );
    const other = await paused(folder, 'pay');
    const { stdout } = await folder.run(['rules', 'list', '--run', run, '--json']);
    expect(stdout.trim().split('\n').length).toBeGreaterThan(0);
    await folder.run(['reject', other, '--remember', 'run']);
  });

  it.each([
    [['--remember', 'tenant'], '--remember takes run, session, user'],
    [['--match', 'tool'], '--match goes with --remember'],
    [['--remember', 'run', '--match', 'all'], '--match takes exact, tool, or a JSON Schema'],
    [['--remember', 'run', '--match', '{"a":'], '--match is not JSON'],
    [['--remember-for', '60'], '--remember-for goes with --remember'],
    [['--all', '--token', 'x'], '--all answers every call alike'],
  ])('refuses %j', async (flags, words) => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay');
    const refused = await folder.run(['approve', run, ...flags]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(words) });
  });
});

describe('several at once', () => {
  it('approve --all answers every call that waits, and says of each what became of it', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay twice');
    const said = await folder.run(['approve', run, '--all']);
    expect(said.code).toBe(0);
    expect(said.stdout.trim().split('\n')).toHaveLength(2);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 0, stdout: expect.stringContaining('paid') });
    expect((await folder.run(['approve', run, '--all'])).code).toBe(2);
  });
});

describe('two people', () => {
  it('inspect says who has approved, and how many are missing; after an edit with the digest to name', async () => {
    const folder = operatedFolder();
    const run = await paused(folder, 'pay', { APPROVALS: '2' });
    const env = { APPROVALS: '2' };
    expect((await folder.run(['approve', run, '--as', 'bea', '--admin', '--args', '{"amount": 7}'])).code).toBe(0);
    expect(await folder.run(['resume', run], env)).toMatchObject({ code: 5 });
    const { stdout } = await folder.run(['inspect', run]);
    expect(stdout).toMatch(/people {3}1 of 2 must still approve; approved: bea /);
    const [, digest = ''] = /--digest=(\S+)/.exec(stdout) ?? [];
    expect(digest).not.toBe('');
    expect((await folder.run(['approve', run, '--as', 'cem', '--admin', `--digest=${digest}`])).code).toBe(0);
    expect(await folder.run(['resume', run], env)).toMatchObject({ code: 0, stdout: '[{"paid":7}]\n' });
    expect((await folder.run(['inspect', run])).stdout).toContain(
      '▶ approved by bea, with {"amount":7}; 1 more person must',
    );
  });
});
