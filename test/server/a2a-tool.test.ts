/** Another agent as a tool: one of the SDK's own server in another process, and one of ours. */
import { describe, expect, it } from 'vitest';
import { type Json, systemClock } from '#core';
import type { Run } from '#runtime';
import { type A2aToolOptions, type AgentCard, a2aTool } from '#server/a2a';
import { call, finish } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';
import { BINDINGS, servedAgent } from './a2a-kit.ts';
import { lossyWay, type Peer, sdkPeer } from './peers.ts';

/** A run that gives one message to the agent, and finishes with what it gets. */
async function asks(message: string, options: A2aToolOptions): Promise<Run> {
  const made = world({
    planner: (run) => {
      const outcome = run.trajectory.step(0)?.calls?.[0]?.outcome;
      if (outcome === undefined) return call('ask_peer', { message });
      return finish(outcome.kind === 'value' ? outcome.value : (JSON.parse(JSON.stringify(outcome)) as Json));
    },
    tools: [a2aTool({ name: 'ask_peer', ...options })],
    clock: systemClock as never,
  });
  const run = await start(made);
  underWay.set(run, () => until(async () => (await entriesOf(made.journal, run, 'call_kept')).length > 0));
  return run;
}

/** Waits until a run knows the task that its call has begun. */
const underWay = new WeakMap<Run, () => Promise<void>>();

describe('an agent as a tool', () => {
  it.each(BINDINGS)('is asked over %s, also when it takes its time, or does not want to', async (binding) => {
    const { url, log } = await sdkPeer(binding);
    const run = await asks('wait 300', { url });
    expect(await run.payload()).toMatchObject({ answer: 'You said wait 300.', taskId: expect.any(String) });
    const refused = await asks('refuse it', { url });
    expect(await refused.payload()).toMatchObject({ kind: 'error', error: { code: 'agent_failed' } });
    expect(await log()).toEqual(['message wait 300', 'message refuse it']);
    await cancelled(binding, { url, log });
    await questioned({ url, log });
  });

  /** What the agent asks is our question, and the answer goes back. */
  async function questioned({ url, log }: Peer): Promise<void> {
    const run = await asks('ask me', { url });
    const result = await run.result();
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'await_input', payload: { message: 'Which color?' } }],
    });
    const token = result.status === 'paused' ? result.pauses[0]?.token : undefined;
    await run.answer(token, { kind: 'answer', value: 'blue' });
    expect(await run.payload()).toMatchObject({ answer: 'You said blue.' });
    expect((await log()).slice(-2)).toEqual(['message ask me', 'message blue']);
  }

  async function cancelled(binding: string, { url, log }: Peer): Promise<void> {
    const run = await asks('wait 60000', { url });
    await until(async () => (await log()).includes('message wait 60000'));
    await underWay.get(run)?.();
    await run.cancel();
    expect(await run.result(), binding).toMatchObject({ status: 'finished', reason: 'cancelled' });
    await until(async () => (await log()).includes('cancel'));
  }

  it.each(BINDINGS)('whose answer was lost over %s is looked up, and is not asked twice', async (binding) => {
    const peer = await sdkPeer(binding);
    const way = await lossyWay(peer.url);
    const card = (await (await fetch(`${peer.url}/.well-known/agent-card.json`)).json()) as AgentCard;
    const through = card.supportedInterfaces.map((each) => ({ ...each, url: each.url.replace(peer.url, way) }));
    const run = await asks('wait 100', { card: { ...card, supportedInterfaces: through } });
    expect(await run.payload()).toMatchObject({ answer: 'You said wait 100.' });
    expect(await peer.log()).toEqual(['message wait 100']);
  });

  it('of ours asks for its approval through our question, and hears of a cancel', async () => {
    const { url, effects, runtime } = await servedAgent();
    const answered = async (query: string, value: Json): Promise<Json | undefined> => {
      const run = await asks(query, { url });
      const result = await run.result();
      const [pause] = result.status === 'paused' ? result.pauses : [];
      expect(pause?.payload?.['message']).toMatch(/refund/);
      await run.answer(pause?.token, { kind: 'answer', value });
      return run.payload();
    };
    expect(await answered('refund A-17', { approved: true })).toMatchObject({ answer: 'A-17 is refunded.' });
    expect(await answered('refund B-18', { approved: false })).toMatchObject({ answer: 'B-18 is not refunded.' });
    expect(effects.count('refund')).toBe(1);
    const run = await asks('slow 500', { url });
    await underWay.get(run)?.();
    await run.cancel();
    await until(async () => (await runtime.list({ status: ['cancelled'] })).length === 1);
  });

  it('that cannot be reached was not asked, and takes a card or a url', async () => {
    expect(() => a2aTool({})).toThrow(/one of the two/);
    expect(a2aTool({ card: { name: 'Über Agent 7', description: 'd', skills: [] } as never }).name).toBe(
      'ask_ber_agent_7',
    );
    const run = await asks('hello', { url: 'http://127.0.0.1:9' });
    expect(await run.payload()).toMatchObject({ kind: 'error', error: { code: 'tool_retries_exhausted' } });
  });
});
