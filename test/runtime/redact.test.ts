import { describe, expect, it } from 'vitest';
import { local, type RunEvent } from '#core';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import { tool } from '#tools';
import { world } from '../kit/world.ts';

const SECRET = 'sk-12345';
const redact = (text: string): string => text.replaceAll(SECRET, '***');

async function played(): Promise<ReturnType<typeof world> & { readonly id: string }> {
  const model = scriptedModel([
    {
      text: `I use ${SECRET}.`,
      reasoning: `The key is ${SECRET}.`,
      calls: [{ id: 'c1', tool: 'lookup', args: { [SECRET]: [SECRET] } }],
    },
    { text: `Done with ${SECRET}.` },
  ]);
  const lookup = tool({
    name: 'lookup',
    description: 'Looks it up.',
    effect: 'read',
    inputSchema: { type: 'object' },
    execute: () => ({ key: SECRET }),
  });
  const made = world({ planner: react({ model }), tools: [lookup] });
  const run = await made.runtime.start(`My key is ${SECRET}`, { identity: local('ana') });
  await run.result();
  return { ...made, id: run.id };
}

async function eventsOf(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe('a sink with redaction', () => {
  it('TK-44 has a goal without the address in it, and the planner the goal as it was asked', async () => {
    const address = 'ana@example.org';
    const goals: string[] = [];
    const made = world({
      planner: ({ goal }) => {
        goals.push(goal);
        return { kind: 'finish', reason: 'goal' };
      },
    });
    const run = await made.runtime.start(`Write to ${address}`, { identity: local('ana') });
    const stored = await eventsOf(run.events({ redact: (text) => text.replaceAll(address, '<address>') }));
    expect(stored[0]).toMatchObject({ type: 'run.started', query: 'Write to <address>' });
    expect(goals).toEqual([`Write to ${address}`]);
    expect((await run.state()).goal).toBe(`Write to ${address}`);
  });

  it('RR-07, W40 stores the trace redacted, and everything else; the step keeps it whole', async () => {
    const { runtime, id } = await played();
    const run = runtime.run(id);
    const stored = await eventsOf(run.events({ redact }));
    expect(JSON.stringify(stored)).not.toContain(SECRET);
    expect(stored.find(({ type }) => type === 'planner.decision')).toMatchObject({
      reasoningTrace: 'The key is ***.',
      text: 'I use ***.',
    });
    expect(stored.find(({ type }) => type === 'tool.invoked')).toMatchObject({ args: { '***': ['***'] } });
    const state = await run.state();
    expect(state.steps[0]).toMatchObject({ reasoning: `The key is ${SECRET}.`, text: `I use ${SECRET}.` });
    expect(state.query).toContain(SECRET);
    // Another reader of the same events is not touched.
    const whole = await eventsOf(run.events());
    expect(whole.map(({ type, seq }) => [type, seq])).toEqual(stored.map(({ type, seq }) => [type, seq]));
    expect(JSON.stringify(whole)).toContain(SECRET);
    await runtime.close();
  });

  it('is given no tokens, in which a secret could be cut in two', async () => {
    const model = scriptedModel([{ text: 'x'.repeat(9) + SECRET }]);
    const { runtime } = world({ planner: react({ model }) });
    const run = await runtime.start('go', { identity: local('ana') });
    const [seen, tokens] = await Promise.all([eventsOf(run.events({ redact })), eventsOf(run.events())]);
    expect(tokens.filter(({ type }) => type === 'token').length).toBeGreaterThan(1);
    expect(seen.filter(({ type }) => type === 'token')).toEqual([]);
    expect(JSON.stringify(seen)).not.toContain(SECRET);
    await runtime.close();
  });

  it('EV-07 that fails is told: nothing of that event is given, and the run is untouched', async () => {
    const { runtime, id } = await played();
    const broken = new Error('the redactor is broken');
    const reader = eventsOf(
      runtime.run(id).events({
        redact: () => {
          throw broken;
        },
      }),
    );
    await expect(reader).rejects.toBe(broken);
    expect(await runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    await runtime.close();
  });
});
