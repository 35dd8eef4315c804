/** Nodes of flows wait as tools do: for a value that comes later, and no longer than they are told. */
import { describe, expect, it } from 'vitest';
import { type Flow, flow, map, node } from '#flow';
import { flowFrom } from '#flow/document';
import { memoryJournal } from '#journal';
import { type Json, local, type Run } from '#pilotage';
import { later } from '#pilotage/tools';
import { advanceUntil } from '../kit/waiting.ts';
import { type World, world } from '../kit/world.ts';

const anything = {};

/** What the flow gives, with the clock going on until it does. */
async function outputOf({ runtime, journal, clock }: World, of: Flow, input: unknown): Promise<Json | undefined> {
  const run: Run = await of.start(runtime, input as never, { identity: local('ana') });
  await advanceUntil(clock, async () => {
    const { status } = (await journal.get(run.id)) ?? {};
    return status === 'finished' || status === 'failed';
  });
  return run.payload();
}

describe('a value that comes later', () => {
  it('is found by the poll of a node, of an item of a map and of a node of a document', async () => {
    const polls: string[] = [];
    const poll = (key: string, city: string): string | undefined => {
      polls.push(key);
      return polls.filter((asked) => asked === key).length < 3 ? undefined : `${city}.mp4`;
    };
    const render = (city: string) => later({ key: `film of ${city}`, pollEveryMs: 1_000 });
    const one = node('render', { effect: 'keyed', execute: render, poll });
    const each = map('each', { effect: 'keyed', execute: render, poll });
    const document = {
      ...{ name: 'written', inputSchema: anything, entry: 'render', exit: 'render' },
      nodes: { render: { execute: 'render', poll: 'poll', effect: 'keyed' } },
    };
    const flows = [
      flow({ name: 'one', inputSchema: anything, entry: one, exit: one }),
      flow({ name: 'many', inputSchema: anything, entry: each, exit: each }),
      flowFrom(document, { functions: { render, poll } }),
    ];
    const there = world({ agents: flows, journal: memoryJournal() });
    const inputs = ['Oslo', ['Rome', 'Bonn'], 'Kiel'];
    const made = await Promise.all(flows.map((each, index) => outputOf(there, each, inputs[index])));
    expect(made).toEqual(['Oslo.mp4', ['Rome.mp4', 'Bonn.mp4'], 'Kiel.mp4']);
    expect(polls).toHaveLength(12);
  });
});
