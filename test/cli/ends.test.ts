/** How the command shows replies that go on, and those that come to another end. */
import { afterEach, describe, expect, it } from 'vitest';
import { parseCommandLine, runCommand } from '#cli';
import { type OpenAIServer, openaiServer, type ServerReply } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { makeFolder, runIn } from './command.ts';

const servers: OpenAIServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(...script: readonly ServerReply[]): Promise<readonly string[]> {
  const server = await openaiServer(script);
  servers.push(server);
  return ['--base-url', server.url, '--model', 'small'];
}

const cut = (text: string): ServerReply => ({ text, finishReason: 'length' });

describe('pilotage run', () => {
  it('prints an answer that came in pieces once, as one', async () => {
    const folder = makeFolder();
    const flags = await serve(cut('One, '), cut('two, '), { text: 'three.' });
    const { code, stdout, stderr } = await folder.run(['run', 'Count', ...flags]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'One, two, three.\n' });
    expect(stderr).toContain('● step 1  the reply is cut off, and goes on');
    expect(stderr).not.toContain('not carried out');
    const inspected = await folder.run(['inspect', runIn(stderr)]);
    expect(inspected.stdout).toContain('the reply is cut off, and goes on');
    expect(inspected.stdout).toContain('One, two, three.');
  });

  it('says that an answer is not whole', async () => {
    const { code, stdout, stderr } = await makeFolder().run([
      'run',
      'Count',
      ...(await serve(...Array(4).fill(cut('1 ')))),
    ]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '1 1 1 1\n' });
    expect(stderr).toContain('■ finished: length  the answer is not whole');
  });

  it('says who refused', async () => {
    const { code, stderr } = await makeFolder().run([
      'run',
      'Go',
      ...(await serve({ finishReason: 'content_filter' })),
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('■ finished: refused  small');
    expect(stderr).toContain('The run ended: refused.');
  });

  it('on a terminal the pieces stand in one line, and nothing is printed twice', async () => {
    const flags = await serve(cut('One, '), cut('two, '), { text: 'three.' });
    const parsed = parseCommandLine(['run', 'Count', ...flags, '--journal', temporaryFile()]);
    if (parsed.kind !== 'command') throw new Error('It is a command.');
    let written = '';
    const write = (text: string): void => {
      written += text;
    };
    const terminal = { isLive: true, write, note: () => {} };
    expect(await runCommand('Count', parsed.options, terminal)).toBe(0);
    expect(written).toBe('One, two, three.\n');
  });
});
