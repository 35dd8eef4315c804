/** The arguments of calls while a model writes them: what a reader is told, and how it fits what becomes of the calls. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Delta, PilotageError, type Planner, type RunEvent } from '#core';
import { scriptedModel } from '#testing';
import { call, finish } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { httpError } from '../kit/model.ts';
import { echo } from '../kit/tools.ts';
import { gate, quiet } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';
import { play, playStreamed } from '../planners/played.ts';

/** The arguments of each call as a reader has put them together, who takes back at each reset what was shown of its step. */
function written(events: readonly RunEvent[]): Record<string, string> {
  const calls = new Map<string, { readonly step: number; readonly text: string }>();
  for (const event of events) {
    if (event.type === 'token.reset') for (const [id, { step }] of calls) if (step === event.step) calls.delete(id);
    if (event.type !== 'tool.input') continue;
    const { callId, step, text, offset } = event;
    const before = calls.get(callId)?.text ?? '';
    expect(offset).toBe(before.length);
    calls.set(callId, { step, text: before + text });
  }
  return Object.fromEntries([...calls].map(([id, { text }]) => [id, text]));
}

const invoked = (events: readonly RunEvent[]) =>
  only(events, 'tool.invoked').map(({ callId, tool, args }) => [callId, tool, args]);

describe('arguments that are being written', () => {
  const two = [
    { tool: 'search', args: { q: 'a text of more than one piece' }, id: 'x1' },
    { tool: 'read', args: { q: 'b' }, id: 'x2' },
  ];

  it('come in pieces under the id that the call then has', async () => {
    const { events } = await playStreamed({ model: scriptedModel([{ calls: two }, { text: 'done' }]) });
    const inputs = only(events, 'tool.input');
    expect(inputs[0]).toMatchObject({ step: 0, callId: 'x1', tool: 'search', text: '', offset: 0 });
    expect(inputs.filter(({ callId }) => callId === 'x1').length).toBeGreaterThan(2);
    const texts = written(events);
    expect(invoked(events)).toEqual(two.map(({ tool, args, id }) => [id, tool, args]));
    for (const { args, id } of two) expect(JSON.parse(texts[id] as string)).toEqual(args);
    const order = events.map(({ type }) => type);
    expect(order.lastIndexOf('tool.input')).toBeLessThan(order.indexOf('planner.decision'));
  });

  it('are the same calls when nobody reads', async () => {
    const { events } = await play({ model: scriptedModel([{ calls: two }, { text: 'done' }]) });
    expect(only(events, 'tool.input')).toEqual([]);
    expect(invoked(events)).toEqual(two.map(({ tool, args, id }) => [id, tool, args]));
  });

  it('are not told of a call that will have another id, of no tool of the run, or that ends the run', async () => {
    const model = scriptedModel([
      { calls: [{ tool: 'search', args: { q: 'a' }, id: 'same' }] },
      {
        calls: [
          { tool: 'search', args: { q: 'b' }, id: 'same' },
          { tool: 'nothing', args: {}, id: 'unknown' },
          { tool: 'read', args: { q: 'c' }, id: 'fine' },
        ],
      },
      { calls: [{ tool: '_finish', args: { answer: 'done' }, id: 'end' }] },
    ]);
    const { events, result } = await playStreamed({ model });
    expect(result.status).toBe('finished');
    expect(Object.keys(written(events))).toEqual(['same', 'fine']);
    const ids = only(events, 'tool.invoked').map(({ callId }) => callId);
    expect(ids.filter((id) => id === 'same' || id === 'fine')).toEqual(['same', 'fine']);
  });

  it('are taken back with the text when the model fails on the way', async () => {
    const model = scriptedModel([
      { text: 'I look.', calls: two, afterDeltas: 3, error: httpError(503) },
      { calls: [{ tool: 'read', args: { q: 'z' }, id: 'y1' }] },
      { text: 'done' },
    ]);
    const { events } = await playStreamed({ model });
    const [reset] = only(events, 'token.reset');
    expect(only(events.slice(0, events.indexOf(reset as RunEvent)), 'tool.input').length).toBeGreaterThan(0);
    expect(written(events)).toEqual({ y1: '{"q":"z"}' });
    expect(invoked(events)).toEqual([['y1', 'read', { q: 'z' }]]);
  });

  it('of a model that writes its calls as text are not told', async () => {
    const text = 'Action: search\nAction Input: {"q": "a"}';
    const model = { model: scriptedModel([{ text }, { text: 'done' }]), toolCalls: 'text' } as const;
    expect(only((await playStreamed({ model })).events, 'tool.input')).toEqual([]);
  });
});

/** A planner of the program's own, which says its pieces and waits after some of them. */
function saying(pieces: readonly Delta[], stopAt: number, held: Promise<void>, reached: () => void): Planner {
  return {
    name: 'says',
    async *next({ trajectory }) {
      if (trajectory.count > 0) return finish('done');
      for (const [index, piece] of pieces.entries()) {
        if (index === stopAt) {
          reached();
          await held;
        }
        yield piece;
      }
      return { decision: { ...call('nobody'), callId: 'c1' } };
    },
  };
}

const PIECES: readonly Delta[] = [
  { type: 'reasoning', text: 'hm' },
  { type: 'text', text: 'I ' },
  { type: 'input', callId: 'c1', tool: 'nobody', text: '' },
  { type: 'text', text: 'look' },
  { type: 'input', callId: 'c1', tool: 'nobody', text: '{"a"' },
  { type: 'reasoning', text: 'so' },
  { type: 'input', callId: 'c1', tool: 'nobody', text: ':1}' },
  { type: 'input', callId: 'c2', tool: 'other', text: '{}' },
];

/** What a reader has put together of step 0, by channel and call; each piece begins where the one before it has ended. */
function joined(events: readonly RunEvent[]): Record<string, string> {
  const all: Record<string, string> = {};
  for (const event of events) {
    if (event.type !== 'token' && event.type !== 'tool.input') continue;
    const channel = event.type === 'token' ? event.channel : event.callId;
    expect(event.offset).toBe(all[channel]?.length ?? 0);
    all[channel] = (all[channel] ?? '') + event.text;
  }
  return all;
}

describe('a reader that comes late', () => {
  it('gets text, reasoning and arguments so far, and then the rest, wherever it comes in', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: PIECES.length - 1 }), async (stopAt) => {
        const held = gate();
        const reached = gate();
        const run = await start(world({ planner: saying(PIECES, stopAt, held.opened, () => reached.open()) }));
        const early = collect(run);
        await reached.opened;
        const late = collect(run);
        await quiet();
        held.open();
        const whole = { reasoning: 'hmso', text: 'I look', c1: '{"a":1}', c2: '{}' };
        expect(joined(await early)).toEqual(whole);
        expect(joined(await late)).toEqual(whole);
      }),
      { numRuns: 20 },
    );
  });

  it('and has read the run up to somewhere, gets the entries since then first', async () => {
    const [held, reached] = [gate(), gate()];
    const planner: Planner = {
      name: 'calls and speaks',
      async *next({ trajectory }) {
        if (trajectory.count < 2) return call('echo');
        yield { type: 'text', text: 'It ' };
        reached.open();
        await held.opened;
        yield { type: 'text', text: 'is' };
        return { decision: finish('It is'), text: 'It is' };
      },
    };
    const run = await start(world({ planner, tools: [echo] }));
    const early = collect(run);
    await reached.opened;
    const late = collect(run, { from: 2 });
    await quiet();
    held.open();
    const all = (await early).map(({ type }) => type);
    const types = (await late).map(({ type }) => type);
    expect(types).toEqual(all.slice(1));
    expect(joined(await late)).toEqual({ text: 'It is' });
  });

  it('is told of no secret that the process knows', async () => {
    const made = world({
      planner: saying(
        [{ type: 'input', callId: 'c1', tool: 'nobody', text: '{"k":"sk-very-secret-1"}' }],
        9,
        quiet(),
        () => {},
      ),
      redact: { rules: ['sk-very-secret-1'] },
    });
    const events = await collect(await start(made));
    expect(JSON.stringify(only(events, 'tool.input'))).not.toContain('very-secret');
    expect(only(events, 'tool.input')).toHaveLength(1);
  });
});

describe('a planner that is asked for the same step again', () => {
  it('takes back what it has said before, also for who comes late', async () => {
    let asked = 0;
    const [reached, held] = [gate(), gate()];
    const planner: Planner = {
      name: 'fails first',
      async *next() {
        asked += 1;
        yield { type: 'text', text: 'Hel' };
        if (asked === 1) throw new PilotageError('model_unavailable', 'The model is away.');
        reached.open();
        await held.opened;
        yield { type: 'text', text: 'lo' };
        return finish('Hello');
      },
    };
    const run = await start(world({ planner, clock: new ImpatientClock() as never }));
    const early = collect(run);
    await reached.opened;
    const late = collect(run);
    await quiet();
    held.open();
    expect(only(await early, 'token.reset')).toHaveLength(1);
    expect(joined(await late)).toEqual({ text: 'Hello' });
  });
});
