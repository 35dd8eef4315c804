/** The server of a chat is killed, and started again on the same journal; or another one answers. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Effects } from '../../examples/scenario-agent.ts';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';
import { Chat, historyOf, plain } from '../kit/ui-chat.ts';
import { until } from '../kit/waiting.ts';

const program = builtFile('test/server/ai-sdk-child.ts');

interface Server {
  readonly url: string;
  kill(): Promise<void>;
}

async function serverOn(folder: string): Promise<Server> {
  const told = Promise.withResolvers<string>();
  const { child, end } = bear({ program, folder, args: [] }, (line) => told.resolve(line));
  end.catch(told.reject);
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await end;
  };
  onTestFinished(kill);
  return { url: await told.promise, kill };
}

function place() {
  const folder = mkdtempSync(join(tmpdir(), 'ai-sdk-'));
  return { folder, effects: new Effects(join(folder, 'effects')) };
}

/** A page that is loaded from this server, and reads on until nothing is under way. */
async function loaded(url: string): Promise<Chat> {
  const page = new Chat(url, {
    messages: await historyOf(url),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  await page.resumeStream();
  return page;
}

const wholeSlow = Array.from({ length: 25 }, (_, index) => `w${index}`).join(' ');

describe('a server that is killed', () => {
  it.each([
    ['while text streams', 'slow 25', (chat: Chat) => chat.said.at(-1)?.includes('w5') === true, wholeSlow],
    ['while a tool runs', 'weather in Oslo', (chat: Chat) => chat.calls.length === 1, 'It is 7 degrees in Oslo.'],
  ] as const)('%s leaves a client that ends with the right content once', async (_, text, isThere, said) => {
    const { folder } = place();
    const first = await serverOn(folder);
    const chat = new Chat(first.url);
    const sent = chat.sendMessage({ text });
    await until(() => isThere(chat));
    await first.kill();
    await sent;
    expect(chat.status).toBe('error');
    const second = await serverOn(folder);
    const page = await loaded(second.url);
    await until(async () => (await historyOf(second.url))[1]?.parts.at(-1)?.type === 'text');
    const history = await historyOf(second.url);
    expect(page.said).toEqual([`user: ${text}`, `assistant: ${said}`]);
    expect(page.messages[1]?.id).toBe(chat.messages[1]?.id);
    expect(plain(page.messages.slice(1))).toEqual(plain(history.slice(1)));
  });

  it('while an approval waits, and again while the call is made: it happens once', async () => {
    const { folder, effects } = place();
    const first = await serverOn(folder);
    const chat = new Chat(first.url);
    await chat.sendMessage({ text: 'refund A-17' });
    await first.kill();
    const second = await serverOn(folder);
    const page = await loaded(second.url);
    const [token = ''] = page.approvals;
    expect(page.messages[1]?.id).toBe(chat.messages[1]?.id);
    await page.addToolApprovalResponse({ id: token, approved: true });
    await until(() => effects.count('refund') === 1);
    await second.kill();
    const third = await serverOn(folder);
    await until(async () => (await historyOf(third.url))[1]?.parts.at(-1)?.type === 'text');
    const last = await loaded(third.url);
    expect(last.said[1]).toBe('assistant: A-17 is refunded.');
    expect(effects.count('refund')).toBe(1);
    // The answer that did not get through is given again.
    const again = new Chat(third.url, { messages: page.messages });
    await again.sendMessage();
    expect(again.said[1]).toBe('assistant: A-17 is refunded.');
    expect(effects.count('refund')).toBe(1);
  });

  it('may be another one for each request', async () => {
    const { folder, effects } = place();
    const [one, other] = await Promise.all([serverOn(folder), serverOn(folder)]);
    const chat = new Chat(one.url);
    await chat.sendMessage({ text: 'refund A-17 and B-18' });
    const page = await loaded(other.url);
    expect(page.messages.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
    for (const id of page.approvals) await page.addToolApprovalResponse({ id, approved: true });
    await until(() => page.status === 'ready' && page.said[1]?.includes('B-18') === true);
    expect(page.said[1]).toBe('assistant: A-17 is refunded. B-18 is refunded.');
    expect(effects.count('refund')).toBe(2);
    expect(await historyOf(one.url)).toEqual(await historyOf(other.url));
    const slow = chat.sendMessage({ text: 'slow 10' });
    await until(() => chat.said.at(-1)?.includes('w1') === true);
    const late = await loaded(other.url);
    await slow;
    expect(late.said.at(-1)).toBe(chat.said.at(-1));
  });
});
