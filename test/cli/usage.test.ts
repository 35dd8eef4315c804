import { describe, expect, it } from 'vitest';
import { COMMAND_HELP, type CommandName, HELP, TAKEN } from '#cli';
import { makeFolder } from './command.ts';

describe('the command line', () => {
  const folder = makeFolder();

  it.each([
    [['--help'], /Usage: pilotage <command>[\s\S]*Exit codes:/],
    [['run', '--help'], /Usage: pilotage run[\s\S]*--session[\s\S]*OLLAMA_HOST[\s\S]*130/],
    [['resume', '-h'], /Usage: pilotage resume[\s\S]*--message[\s\S]*--accept-changes/],
    [['list', '--help'], /Usage: pilotage list[\s\S]*--status[\s\S]*--session[\s\S]*--parent/],
    [['inspect', '--help'], /Usage: pilotage inspect/],
    [['approve', '--help'], /Usage: pilotage approve[\s\S]*--args[\s\S]*--token[\s\S]*--as/],
    [['reject', '--help'], /Usage: pilotage reject[\s\S]*--reason/],
    [['cancel', '--help'], /Usage: pilotage cancel[\s\S]*--soft/],
    [['send', '--help'], /Usage: pilotage send <run> "<message>"/],
    [['redirect', '--help'], /Usage: pilotage redirect <run> "<goal>"/],
    [['pause', '--help'], /Usage: pilotage pause/],
    [['fork', '--help'], /Usage: pilotage fork[\s\S]*--at[\s\S]*--result[\s\S]*--goal[\s\S]*--allow-effects/],
    [['replay', '--help'], /Usage: pilotage replay[\s\S]*--model/],
    [['--version'], /^\d+\.\d+\.\d+\n$/],
  ])('%j explains itself on stdout', async (args, text) => {
    expect(await folder.run(args)).toEqual({ code: 0, stdout: expect.stringMatching(text), stderr: '' });
  });

  it.each([
    [[], 'No command is given'],
    [['fly'], 'There is no command "fly"'],
    [['run'], 'run takes one goal'],
    [['run', ' '], 'run takes one goal'],
    [['run', 'a', 'b'], 'run takes one goal'],
    [['run', 'a', '--fast'], "Unknown option '--fast'"],
    [['run', 'a', '--max-turns', '3'], "Unknown option '--max-turns'. Did you mean --max-steps?"],
    [['run', 'a', '--jsno'], "Unknown option '--jsno'. Did you mean --json?"],
    [['run', 'a', '--model'], '--model'],
    [['run', 'a', '--model', 'm'], '--model needs a server'],
    [['run', 'a', '--base-url', 'http://127.0.0.1:1/v1'], '--base-url needs a model'],
    [['run', 'a', '--base-url', 'ftp://u:secret@x', '--model', 'm'], '--base-url is not an http or https URL'],
    [['run', 'a', '--base-url', 'http://127.0.0.1:1', '--model', 'm', '--api-key-env', 'NOPE'], 'not set'],
    [['run', 'a', '--max-steps', '0'], '--max-steps takes a whole number'],
    [['run', 'a', '--max-steps', '1e3'], '--max-steps takes a whole number'],
    [['run', 'a', '--max-calls', '0'], '--max-calls takes a whole number'],
    [['run', 'a', '--max-tokens', '1.5'], '--max-tokens takes a whole number'],
    [['run', 'a', '--timeout', '-1'], 'timeout'],
    [['run', 'a', '--max-cost-usd', 'x'], '--max-cost-usd takes a number'],
    [['run', 'a', '--prices', '1'], '--prices takes two numbers'],
    [['run', 'a', '--model', 'm', '--base-url', 'http://127.0.0.1:1', '--max-cost-usd', '1'], 'needs --prices'],
    [['run', 'a', '--workspace', 'missing'], 'Give an existing folder'],
    [['run', 'a', '--session', ' '], '--session is empty'],
    [['resume', 'run_x', '--session', 's'], "Unknown option '--session'"],
    [['list', 'x'], 'list takes no further words'],
    [['list', '--status', 'busy'], '--status takes pending, running, waiting, paused'],
    [['inspect'], 'inspect takes one run'],
    [['approve'], 'approve takes one run'],
    [['approve', 'run_x', '--args', '{secret'], '--args is not JSON'],
    [['approve', 'run_x', '--payload', '["secret"]'], '--payload takes a JSON object'],
    [['approve', 'run_x', '--soft'], "Unknown option '--soft'"],
    [['reject', 'run_x', '--args', '{}'], "Unknown option '--args'"],
    [['send', 'run_x'], 'send takes a run and a message'],
    [['send', 'run_x', ' '], 'send takes a run and a message'],
    [['redirect', 'run_x', 'a', 'b'], 'redirect takes a run and its new goal'],
    [['fork', 'run_x', '--at', '0'], '--at takes a whole number'],
    [['replay', 'run_x', '--max-steps', '1'], "Unknown option '--max-steps'"],
  ])('%j is wrong usage, in one line', async (args, text) => {
    const { code, stdout, stderr } = await folder.run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.split('\n')[0]).toContain(text);
    expect(stderr).not.toContain('secret');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('shows the stack with --debug only', async () => {
    const { stderr } = await folder.run(['inspect', 'run_x', '--debug']);
    expect(stderr).toMatch(/^\s+at /m);
  });

  it('says when there is no journal, no run, or a file that is none', async () => {
    expect(await folder.run(['list'])).toMatchObject({ code: 4, stderr: expect.stringContaining('no journal') });
    expect(await folder.run(['resume', 'run_x'])).toMatchObject({ code: 4, stdout: '' });
    await folder.run(['run', 'x']);
    for (const command of ['resume', 'inspect', 'approve', 'cancel', 'fork', 'replay']) {
      const { code, stderr } = await folder.run([command, 'run_x']);
      expect(code).toBe(2);
      expect(stderr).toContain('run_not_found');
    }
    folder.write('broken.db', 'this is no database, and long enough to be looked at as one\n'.repeat(40));
    const broken = await folder.run(['list', '--journal', 'broken.db']);
    expect(broken.code).toBe(4);
    expect(broken.stderr.trim().split('\n')).toHaveLength(1);
  });
});

describe('the help of a command', () => {
  it.each(Object.keys(TAKEN) as CommandName[])('of %s names its options, and no others', (command) => {
    const named = [...COMMAND_HELP[command].matchAll(/^ {2}(?:-h, )?--([a-z-]+)/gm)].map(([, name = '']) => name);
    expect(named.sort()).toEqual(Object.keys(TAKEN[command]).sort());
    expect(HELP).toMatch(new RegExp(`^ {2}${command}\\b`, 'm'));
  });
});
