import { afterAll, describe, expect, it } from 'vitest';
import { type OpenAIServer, openaiServer, type RecordedRequest, type ServerHandler } from '#testing';
import { makeFolder, runIn } from './command.ts';

const servers: OpenAIServer[] = [];
afterAll(async () => {
  for (const server of servers) await server.close();
});

async function serve(handler: ServerHandler): Promise<{ server: OpenAIServer; flags: string[] }> {
  const server = await openaiServer(handler);
  servers.push(server);
  return { server, flags: ['--base-url', server.url, '--model', 'small'] };
}

/** What was said before the last message of the request, without the system prompt. */
function before(request: RecordedRequest | undefined): string[] {
  const said = (request?.body.messages ?? []).filter(({ role }) => role !== 'system');
  return said.slice(0, -1).map(({ role, content }) => `${role}: ${content}`);
}

const OSLO = ['user: What is the weather in Oslo?', 'assistant: Rain.'];

describe('pilotage run --session', () => {
  it('sends the earlier goals and answers of the session ahead of the new goal', async () => {
    const folder = makeFolder();
    const { server, flags } = await serve((_, index) => ({ text: index === 0 ? 'Rain.' : 'Sun.' }));
    const run = (goal: string, ...more: string[]): ReturnType<typeof folder.run> =>
      folder.run(['run', goal, ...more, ...flags]);
    const first = await run('What is the weather in Oslo?', '--session', 's');
    const second = await run('and tomorrow?', '--session', 's');
    expect([first, second]).toMatchObject([
      { code: 0, stdout: 'Rain.\n' },
      { code: 0, stdout: 'Sun.\n' },
    ]);
    await run('and tomorrow?', '--session', 'other');
    await run('and tomorrow?');
    await run('and then?', '--session', 's');
    expect(server.requests.map(before)).toEqual([
      [],
      OSLO,
      [],
      [],
      [...OSLO, 'user: and tomorrow?', 'assistant: Sun.'],
    ]);
    const last = JSON.stringify(server.requests[1]?.body.messages?.at(-1));
    expect(last).toContain('and tomorrow?');
    expect(last).not.toContain('Oslo');

    const listed = (await folder.run(['list', '--session', 's'])).stdout.trimEnd().split('\n');
    expect(listed).toHaveLength(3);
    expect(listed[2]).toContain(runIn(first.stderr));
    expect((await folder.run(['list'])).stdout.trimEnd().split('\n')).toHaveLength(5);
    expect(await folder.run(['list', '--session', 'nobody'])).toMatchObject({ stdout: '', code: 0 });
  });

  it('has a turn of a run that was killed and resumed, and of one that failed', async () => {
    const folder = makeFolder();
    let asked = (): void => {};
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const { server, flags } = await serve((_, index) => {
      if (index === 1) return { text: 'Rain.' };
      if (index === 2) return { error: { status: 400, message: 'no such field' } };
      if (index > 2) return { text: 'Sun.' };
      asked();
      return new Promise(() => {});
    });
    const killed = folder.start(['run', 'What is the weather in Oslo?', '--json', '--session', 's', ...flags]);
    await isAsked;
    killed.child.kill('SIGKILL');
    const { stdout } = await killed.done;
    expect(await folder.run(['resume', runIn(stdout), ...flags])).toMatchObject({ code: 0, stdout: 'Rain.\n' });
    expect((await folder.run(['run', 'and in Bergen?', '--session', 's', ...flags])).code).toBe(3);
    expect((await folder.run(['run', 'and tomorrow?', '--session', 's', ...flags])).code).toBe(0);
    expect(before(server.requests.at(-1))).toEqual([
      ...OSLO,
      'user: and in Bergen?',
      'assistant: (There is no answer.)',
    ]);
  });
});
