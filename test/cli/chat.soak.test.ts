/** `pilotage chat`, `run --session` and `sessions`: a conversation in a session, from several processes. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chattingFolder } from './chatting.ts';
import type { Finished, Started } from './command.ts';

/** A chat whose lines come over a pipe. */
function say({ child }: Started, ...lines: string[]): void {
  child.stdin?.write(lines.map((line) => `${line}\n`).join(''));
}

function end(started: Started): Promise<Finished> {
  started.child.stdin?.end();
  return started.done;
}

/** What terminals obey is shown, and never written. */
const SESSION = 'trip\u001b[2J';

describe('pilotage chat on a pipe', () => {
  it('asks again what words do not answer, and takes the value that a planner asks for itself', async () => {
    const chat = chattingFolder().start(['chat']);
    say(chat, 'count', 'hello', '/answer 7', '/answer {"rows": "x"}', '/answer {"rows": 7}', 'one');
    const { code, stdout, stderr } = await end(chat);
    expect(stdout).toBe('re count + hello + 7\nre one\n');
    expect(stderr.split('The run waits for an answer: How many?').length).toBe(3);
    expect(stderr).toContain('/answer {"rows":1}');
    expect(stderr.match(/was refused, and the question is still open/g)).toHaveLength(2);
    expect(code).toBe(0);
  });

  it('answers line after line, edits, regenerates, goes back to a branch, and takes answers to what a turn asks', async () => {
    const folder = chattingFolder();
    const chat = folder.start(['chat', '--session', SESSION]);
    say(
      chat,
      'one',
      'two',
      '/edit 2 other',
      '/turns',
      '/regenerate',
      '/branches',
      '/switch 1',
      '/title Trip to \u001b]0;Rome\u0007',
    );
    say(chat, 'pay', '/approve {"amount": 7}', 'ask', 'blue', '/nope', '/edit 77 x', '//slash', '\u001b[31mred');
    const { code, stdout, stderr } = await end(chat);
    expect(stdout.split('\n')).toEqual([
      're one',
      're two',
      're other',
      '  1  > one',
      '       re one',
      '  3  > other',
      '       re other',
      're other',
      '  1    … two',
      '  2    … other',
      '  3  * … other',
      '  1  > one',
      '       re one',
      '  2  > two',
      '       re two',
      're pay + paid 7',
      're ask + blue',
      're /slash',
      're ␛[31mred',
      '',
    ]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/The run waits for approval: pay {"amount":100}\n {2}token .*\n {2}yes {6}\/approve\n/);
    expect(stderr).toContain('The run waits for your message. Go on with: your next message');
    expect(stderr).toContain('There is no /nope;');
    expect(stderr).toContain('There is no turn 77 on this branch');

    const listed = await folder.run(['sessions', 'list']);
    expect(listed.stdout).toMatch(/^trip␛\[2J {2,}\S+ {2,}.* ago {2,}8 turns {2}“Trip to ␛\]0;Rome␇”\n$/);
    const whole = await folder.run(['sessions', 'show', SESSION]);
    expect(whole.stdout).toMatch(
      /^Trip to ␛\]0;Rome␇\n {2}1 {2}> one\n[\s\S]*3 branches, by the last message of each:\n {2}1 {2}\* … ␛\[31mred\n/,
    );
    for (const text of [stdout, stderr, listed.stdout, whole.stdout]) expect(text).not.toContain('\u001b');
    expect(await folder.run(['sessions', 'delete', SESSION])).toMatchObject({
      stdout: 'Deleted: trip␛[2J, with 8 runs.\n',
      code: 0,
    });
  });

  it('sends while a turn is under way, stops it, and ends as the last turn has', async () => {
    const folder = chattingFolder();
    const chat = folder.start(['chat']);
    say(chat, 'hold one', '/queue two', '/steer also this');
    await chat.untilOutput(/tool: entered/);
    say(chat, '/stop', 'hold three');
    await chat.untilOutput(/(?:tool: entered[\s\S]*){2}/);
    say(chat, '/interrupt no, four', 'pay');
    // The turn has both messages, the one that holds among them.
    await chat.untilOutput(/(?:tool: entered[\s\S]*){3}/);
    folder.write('go', '');
    const { code, stdout, stderr } = await end(chat);
    expect(stdout).toBe('re two\nre hold three\n\nno, four + held\n');
    expect(stderr).toMatch(/control USER_MESSAGE {2}“also this”[\s\S]*finished: cancelled/);
    // The end of the input does not approve it.
    expect(code).toBe(5);
  });
});

describe('two processes in one session', () => {
  it('see the turns of each other, one after another', async () => {
    const folder = chattingFolder();
    const chat = folder.start(['chat', '--session', 's']);
    say(chat, 'hold one');
    await chat.untilOutput(/tool: entered/);
    expect(await folder.run(['run', '--session', 's', 'x', '--busy', 'reject'])).toMatchObject({ stdout: '', code: 6 });
    const other = folder.start(['run', '--session', 's', 'two', '--id', 'm2']);
    await other.untilOutput(/queued behind the turn under way \(run_/);
    folder.write('go', '');
    expect(await other.done).toMatchObject({ stdout: 're two\n', code: 0 });
    await chat.untilOutput(/re two/);
    // The same message again is shown, and not answered twice.
    expect(await folder.run(['run', '--session', 's', 'two', '--id', 'm2'])).toMatchObject({ stdout: 're two\n' });
    const { stdout, code } = await end(chat);
    expect([stdout, code]).toEqual(['re hold one + held\nre two\n', 0]);
    expect(folder.asked()).toEqual(['hold one', 'hold one', 'two']);
  });
});

describe('a chat that does not end by itself', () => {
  it('is killed in the middle of a turn, and whoever comes next goes on with it and with what waited', async () => {
    const folder = chattingFolder();
    const killed = async (...lines: string[]): Promise<void> => {
      const chat = folder.start(['chat']);
      say(chat, ...lines);
      await chat.untilOutput(/queued behind[\s\S]*tool: entered|tool: entered[\s\S]*queued behind/);
      chat.child.kill('SIGKILL');
      await chat.done;
      folder.write('go', '');
    };
    await killed('hold one', '/queue two');
    expect(await folder.run(['run', '--session', 'chat', 'three'])).toMatchObject({ stdout: 're three\n', code: 0 });
    rmSync(join(folder.path, 'go'));
    await killed('hold four', '/queue five');
    const next = folder.start(['chat']);
    say(next, '/turns');
    const { stdout, code } = await end(next);
    expect(stdout).toMatch(
      /^re hold four \+ held\nre five\n {2}1 {2}> hold one\n {7}re hold one \+ held\n[\s\S]* {2}5 {2}> five\n/,
    );
    expect(code).toBe(0);
  });

  it('cancels the turn at a Ctrl-C, and leaves at a second one', async () => {
    const folder = chattingFolder();
    const chat = folder.start(['chat']);
    say(chat, 'hold one');
    await chat.untilOutput(/tool: entered/);
    chat.child.kill('SIGINT');
    await chat.untilOutput(/Cancelling what is under way[\s\S]*The run ended: cancelled/);
    chat.child.kill('SIGINT');
    expect((await chat.done).code).toBe(130);
  });

  it('gives the turn back at a SIGTERM, when what is under way has ended or its grace is over', async () => {
    const folder = chattingFolder();
    const chat = folder.start(['chat', '--grace', '0.1']);
    say(chat, 'hold one');
    await chat.untilOutput(/tool: entered/);
    chat.child.kill('SIGTERM');
    expect((await chat.done).code).toBe(143);
    expect((await folder.run(['list', '--json'])).stdout).toContain('"status":"running"');
  });
});
