import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsIn, makeFolder, runIn } from './command.ts';
import { project } from './surveyed.ts';

describe('pilotage run without a model', () => {
  it('surveys the folder', async () => {
    const { code, stdout, stderr } = await project().run(['run', 'What is this?']);
    expect(code).toBe(0);
    expect(stderr.split('\n')[0]).toMatch(/^No model is set up/);
    expect(stderr).toContain('✓ list_files  {"path":"src","depth":32}');
    for (const part of [
      'Asked: What is this?',
      '- `src/` 2 files',
      'The package `sample`',
      '`npm run test` runs `vitest`',
      'Begin \\*here* (Ana)'.replace('here*', 'here\\*'),
      '1 marked line in 1 file.',
      '- `src/main.ts:1` `// TODO: write it`',
      'Files that often hold secrets: `.env`',
      'No file fixes the versions',
      '- `node_modules`: not walked into',
    ]) {
      expect(stdout).toContain(part);
    }
    expect(stdout).not.toContain('not ours');
    expect(stdout).not.toContain('KEY=value');
    expect(stdout).not.toContain('.pilotage');
  });

  it('surveys an empty folder', async () => {
    const { code, stdout } = await makeFolder().run(['run', 'x']);
    expect(code).toBe(0);
    expect(stdout).toContain('The folder is empty.');
    expect(stdout).toContain('no git history');
  });

  it('does not say that there is no git history where it may not be read', async () => {
    const folder = makeFolder();
    // The objects of a local clone have a second name, outside of the folder.
    execFileSync('git', ['clone', '-q', project().path, '.'], { cwd: folder.path, stdio: 'pipe' });
    const { code, stdout } = await folder.run(['run', 'x']);
    expect(code).toBe(0);
    expect(stdout).toContain('The git history was not read');
    expect(stdout).toContain('- git_log: ');
    expect(stdout.toLowerCase()).not.toContain('no git history');
  });

  it('surveys a folder of odd names', async () => {
    const folder = makeFolder();
    writeFileSync(Buffer.concat([Buffer.from(`${folder.path}/caf`), Buffer.from([0xe9])]), 'x');
    folder.write('a`b|c*d\n# e\u001b[31m/f.txt', 'TODO \u001b]0;title\u0007\n');
    symlinkSync('/etc', join(folder.path, 'out'));
    execFileSync('mkfifo', [join(folder.path, 'pipe')]);
    const { code, stdout, stderr } = await folder.run(['run', 'odd \u001b[2J\u009b2J goal']);
    expect(code).toBe(0);
    expect(stdout).toContain('Names that are not UTF-8');
    expect(stdout).toContain('1 symbolic link that the tools do not follow: `out`');
    expect(stdout).toContain('␛]0;title␇');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    expect(stdout).not.toMatch(/^# e/m);
  });

  it('surveys another folder with --workspace', async () => {
    const folder = makeFolder();
    folder.write('sub/inside.txt', 'x');
    folder.write('outside.txt', 'x');
    const { stdout } = await folder.run(['run', 'x', '--workspace', 'sub']);
    expect(stdout).toContain('inside.txt');
    expect(stdout).not.toContain('outside.txt');
  });

  it('prints nothing but events with --json', async () => {
    const { code, stdout, stderr } = await project().run(['run', 'x \u009b1m', '--json']);
    expect(code).toBe(0);
    expect(stdout).not.toContain('\u009b');
    const events = eventsIn(stdout);
    expect(events[0]).toMatchObject({ type: 'run.started', query: 'x \u009b1m', agent: 'survey', seq: 1 });
    expect(events.at(-1)).toMatchObject({ type: 'planner.finish', reason: 'goal' });
    expect(events.every(({ identity }) => identity.run === events[0]?.identity.run)).toBe(true);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  it('pauses at a limit, and goes on when it is raised', async () => {
    const folder = project();
    const paused = await folder.run(['run', 'x', '--max-steps', '1']);
    const run = runIn(paused.stderr);
    expect(paused).toMatchObject({ code: 5, stdout: '' });
    expect(paused.stderr).toContain(`The limit of steps is used up. Go on with: pilotage resume ${run} --max-steps 2`);
    expect(await folder.run(['resume', run])).toMatchObject({ code: 5, stdout: '' });
    const resumed = await folder.run(['resume', run, '--max-steps', '9']);
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('# Survey') });
    expect(resumed.stderr).not.toContain('step 1 ');
    const again = await folder.run(['resume', run]);
    expect(again).toMatchObject({ code: 0, stdout: resumed.stdout });
    expect(await folder.run(['resume', run, '--message', 'too late'])).toMatchObject({ code: 2, stdout: '' });
  });

  it('stops when nobody reads, and can be resumed', async () => {
    const folder = project();
    const { child, done } = folder.start(['run', 'x', '--json']);
    child.stdout?.once('data', () => child.stdout?.destroy());
    const { code, stdout } = await done;
    expect([0, 141]).toContain(code);
    expect(await folder.run(['resume', runIn(stdout)])).toMatchObject({ code: 0 });
  });

  it('stops when nobody reads what it says about the way, and did not fail', async () => {
    const folder = project();
    const { child, done } = folder.start(['run', 'x']);
    child.stderr?.on('data', (piece) => {
      if (/run_/.test(String(piece))) child.stderr?.destroy();
    });
    const { code, stderr } = await done;
    expect([0, 141]).toContain(code);
    expect(await folder.run(['resume', runIn(stderr)])).toMatchObject({ code: 0 });
  });
});

describe('pilotage list and inspect', () => {
  it('shows runs and what they did', async () => {
    const folder = project();
    await folder.run(['run', 'the first']);
    const second = await folder.run(['run', 'the second', '--max-steps', '1']);
    const all = await folder.run(['list']);
    expect(all.stdout.split('\n').map((row) => /the \w+$/.exec(row)?.[0])).toEqual([
      'the second',
      'the first',
      undefined,
    ]);
    const paused = await folder.run(['list', '--status', 'paused,failed', '--json']);
    expect(JSON.parse(paused.stdout)).toMatchObject({ status: 'paused', query: 'the second' });
    expect((await folder.run(['list', '--limit', '1'])).stdout.split('\n')).toHaveLength(2);
    expect((await folder.run(['list', '--status', 'failed'])).stdout).toBe('');

    const run = runIn(second.stderr);
    const inspected = await folder.run(['inspect', run]);
    expect(inspected).toMatchObject({ code: 0, stderr: '' });
    expect(inspected.stdout).toMatch(/^run {6}run_\w+ {2}paused\n/);
    expect(inspected.stdout).toMatch(/\+0\.\d{3} {2}● step 1 {2}calls side by side/);
    expect(inspected.stdout).toContain('✓ git_log  {"limit":20}');
    expect(inspected.stdout).toContain('totals   1 step, 3 calls');
    const events = eventsIn((await folder.run(['inspect', run, '--json'])).stdout);
    expect(events.at(-1)).toMatchObject({ type: 'pause.requested', reason: 'constraints_conflict' });
  });
});
