/** The server is killed in the middle, and another one goes on with the journal: the client ends with the right messages, once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Effects } from '../../examples/scenario-agent.ts';
import { type Client, client, rolesOf, say, textOf } from '../kit/ag-ui.ts';
import { builtFile } from '../kit/built.ts';
import { type Born, bear } from '../kit/lives.ts';
import { until } from '../kit/waiting.ts';

const program = builtFile('test/server/ag-ui-child.ts');

async function started(folder: string): Promise<{ readonly url: string; readonly kill: () => Promise<boolean> }> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const born: Born = bear({ program, folder, args: [] }, resolve);
  const kill = (): Promise<boolean> => {
    born.child.kill('SIGKILL');
    return born.end;
  };
  onTestFinished(async () => void (await kill()));
  return { url: await Promise.race([promise, born.end.then(() => Promise.reject(new Error('It has ended.')))]), kill };
}

/** Kills the server when it is time, and starts another one that the client talks to from then on. */
async function killedWhen(
  isTime: (client: Client, effects: Effects) => boolean,
  words: string,
  before?: (agent: Client) => Promise<unknown>,
) {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-ag-ui-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const first = await started(folder);
  const agent = Object.assign(client(first.url), { fetch: ending });
  const effects = new Effects(join(folder, 'effects'));
  const saying = (before === undefined ? say(agent, words) : say(agent, words).then(() => before(agent))).catch(
    () => {},
  );
  await until(() => isTime(agent, effects));
  expect(await first.kill()).toBe(true);
  await saying;
  const second = await started(folder);
  agent.url = `${second.url}/ag-ui`;
  const fresh = client(second.url, { threadId: agent.threadId });
  return { agent, fresh, effects };
}

/** A connection that is cut ends, as behind a proxy: of one that fails this client lets a second error go unhandled. */
const ending: typeof fetch = async (address, init) => {
  const { body, status, headers } = await fetch(address, init);
  const reader = body?.getReader();
  const pull = async (controller: ReadableStreamDefaultController): Promise<void> => {
    const { done, value } = (await reader?.read().catch(() => undefined)) ?? { done: true, value: undefined };
    if (done) controller.close();
    else controller.enqueue(value);
  };
  return new Response(new ReadableStream({ pull }), { status, headers });
};

const yes = (agent: Client) => [
  { interruptId: agent.pendingInterrupts[0]?.id ?? '', status: 'resolved' as const, payload: { approved: true } },
];

describe('a server that is killed', () => {
  it('while text streams', async () => {
    const texts = (agent: Client): number => agent.types.filter((type) => type === 'TEXT_MESSAGE_CONTENT').length;
    const { agent, fresh } = await killedWhen((agent) => texts(agent) > 5, 'slow 40');
    await Promise.all([agent.connectAgent(), fresh.connectAgent()]);
    const words = Array.from({ length: 40 }, (_, index) => `w${index}`).join(' ');
    for (const each of [agent, fresh]) {
      expect(rolesOf(each)).toEqual(['user', 'assistant']);
      expect(textOf(each)).toBe(words);
    }
  });

  it('while a tool runs', async () => {
    const { agent, fresh, effects } = await killedWhen(
      (_, done) => done.count('refund') === 1,
      'refund A-17',
      (agent) => agent.runAgent({ resume: yes(agent) }),
    );
    // The client has heard nothing of its answer, and gives it again.
    await Promise.all([agent.runAgent({ resume: yes(agent) }), fresh.connectAgent()]);
    for (const each of [agent, fresh]) {
      expect(rolesOf(each)).toEqual(['user', 'assistant', 'tool', 'assistant']);
      expect(textOf(each)).toBe('A-17 is refunded.');
    }
    expect(effects.count('refund')).toBe(1);
  });

  it('while an approval waits', async () => {
    const { agent, fresh, effects } = await killedWhen((agent) => agent.pendingInterrupts.length > 0, 'refund A-17');
    await fresh.connectAgent();
    expect(fresh.messages).toEqual(agent.messages);
    expect(fresh.pendingInterrupts).toEqual(agent.pendingInterrupts);
    const resume = yes(agent);
    await agent.runAgent({ resume });
    await fresh.runAgent({ resume });
    for (const each of [agent, fresh]) {
      expect(rolesOf(each)).toEqual(['user', 'assistant', 'tool', 'assistant']);
      expect(textOf(each)).toBe('A-17 is refunded.');
    }
    expect(effects.count('refund')).toBe(1);
  });
});
