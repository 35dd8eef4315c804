/** The server of A2A is killed, started again on its journal, or another one answers: its client has the right content once, and nothing is done twice. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TaskState } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { afterAll, describe, expect, it } from 'vitest';
import { Effects } from '../../examples/scenario-agent.ts';
import { until } from '../kit/waiting.ts';
import { answerOf, asked, BINDINGS, clientAt, Reader, said, sendFor } from './a2a-kit.ts';
import { programAt } from './peers.ts';
import { receiver } from './receiver.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Life {
  readonly url: string;
  readonly port: number;
  kill(): Promise<unknown>;
}

function born(port = 0, host = 'nobody'): Promise<Life> {
  return programAt('a2a-child.ts', folder, String(port), host);
}

const effects = () => new Effects(join(folder, 'effects'));

/** Reads the task until it has ended, over the end of a connection too. */
async function whole(client: Client, id: string): Promise<Reader> {
  const reader = new Reader();
  try {
    await reader.read(client.resubscribeTask({ tenant: '', id }));
  } catch (error) {
    if (!/has ended/.test(String(error))) throw error;
  }
  return reader;
}

describe.each(BINDINGS)('A2A over %s, when its server is killed', (binding) => {
  it('while text streams: a durable answer after a restart, whole and once', async () => {
    const first = await born();
    const client = await clientAt(first.url, binding);
    const reader = new Reader();
    const cut = reader.read(client.sendMessageStream(asked(said('slow 15'))), ({ answer }) => answer.includes('w3'));
    await cut;
    const id = reader.task?.id ?? '';
    await first.kill();
    const second = await born(first.port);
    const after = await whole(await clientAt(second.url, binding), id);
    const wanted = Array.from({ length: 15 }, (_, index) => `w${index}`).join(' ');
    const task = await client.getTask({ tenant: '', id, historyLength: undefined });
    expect([task.status?.state, answerOf(task)]).toEqual([TaskState.TASK_STATE_COMPLETED, wanted]);
    if (after.kinds.length > 0) expect(after.answer).toBe(wanted);
  });

  it('while a tool runs, and another server answers: it has its effect once', async () => {
    const first = await born();
    const client = await clientAt(first.url, binding);
    const task = await sendFor(client, said('refund A-17'));
    const before = effects().count('refund');
    const yes = said('approve', { taskId: task.id });
    const lost = sendFor(client, yes).catch(() => undefined);
    await until(() => effects().count('refund') > before);
    await first.kill();
    await lost;
    const second = await born();
    const other = await clientAt(second.url, binding);
    // The client does not know whether its answer was heard, and sends it again.
    const done = await sendFor(other, yes);
    expect([done.status?.state, answerOf(done)]).toEqual([TaskState.TASK_STATE_COMPLETED, 'A-17 is refunded.']);
    expect(effects().count('refund')).toBe(before + 1);
  });

  it('while an approval waits: it waits on, push after a restart (configs and deliveries are stored), a lost message begins nothing twice', async () => {
    const to = await receiver();
    const first = await born(0, to.host);
    const client = await clientAt(first.url, binding);
    const before = effects().count('refund');
    const message = said('refund B-18');
    const config = { id: 'c', taskId: '', tenant: '', url: to.url, token: 't', authentication: undefined };
    const task = await sendFor(client, message, { taskPushNotificationConfig: config });
    await first.kill();
    await to.close();
    const second = await born(first.port, to.host);
    const again = await sendFor(client, message);
    expect([again.id, again.status?.state]).toEqual([task.id, TaskState.TASK_STATE_INPUT_REQUIRED]);
    const stream = new Reader().read(client.resubscribeTask({ tenant: '', id: task.id }));
    await sendFor(client, said('approve', { taskId: task.id }));
    expect((await stream).answer).toBe('B-18 is refunded.');
    await second.kill();
    await to.open();
    await born(first.port, to.host);
    await until(() => to.received.some(({ body }) => body.task?.status.state === 'TASK_STATE_COMPLETED'));
    const states = to.received.map(({ body }) => (body.task ?? body.statusUpdate).status.state as string);
    const inOrder = states.filter((state, index) => state !== states[index - 1]);
    expect(inOrder.slice(-3)).toEqual(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
    expect(effects().count('refund')).toBe(before + 1);
  });
});
