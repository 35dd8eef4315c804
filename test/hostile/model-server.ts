/**
 * The hostile model servers, in a thread of their own, so that what they do takes no time of the thread that is watched. The
 * request names its case: what is answered follows from it and from how often it was asked.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { seededRandom } from '#testing';
import { planOf } from './cases.ts';
import { call, misbehaviours, prepare, say } from './replies.ts';

const asked = new Map<string, number>();

const server = createServer((incoming, response) => {
  response.on('error', () => {});
  incoming.on('error', () => {});
  void (async () => {
    const body = await read(incoming);
    const [id = '', seedText = '0'] = /case_(\d+)_\d+/.exec(body) ?? [];
    const seed = Number(seedText);
    const turn = asked.get(id) ?? 0;
    asked.set(id, turn + 1);
    const plan = planOf(seed);
    const random = seededRandom(seed * 100 + turn);
    const who = { incoming, response, stream: body.includes('"stream":true'), random };
    if (turn < plan.misbehaves) {
      await misbehaviours[plan.server]?.(who);
      return;
    }
    // From then on it is a good model: it calls the tool, and finishes with what came of it.
    const isCalled = body.includes('odd-was-called');
    if (isCalled || turn > plan.misbehaves + 3) say(who, { role: 'assistant', content: 'Done.' });
    else if (plan.mode === 'native') {
      const args = JSON.stringify({ note: 'odd-was-called' });
      say(who, { role: 'assistant', content: null, tool_calls: [call('odd', args)] }, { finish_reason: 'tool_calls' });
    } else if (plan.mode === 'text') {
      say(who, { role: 'assistant', content: '{"tool":"odd","args":{"note":"odd-was-called"}}' });
    } else {
      const step = { id: 'a', type: 'tool', toolId: 'odd', input: { note: 'odd-was-called' } };
      say(who, {
        role: 'assistant',
        content: JSON.stringify({ steps: [step, { id: 'end', type: 'finish', input: 'Done.' }] }),
      });
    }
  })().catch(() => response.destroy());
});

async function read(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

prepare();
server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port));
