/** Older turns of a session are summed up by the compaction of a run, and the next runs start from that summary, wherever they are driven. */
import { describe, expect, it } from 'vitest';
import { type Entry, local } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { continuedAfter } from '#runtime';
import { type ScriptedModel, scriptedModel } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { bookings, claudeSays, type Life, life, messagesOf, text, use } from '../kit/sessions.ts';
import { start, world } from '../kit/world.ts';

const said = (value: unknown): string => JSON.stringify(value);
const long = (turn: number): string => `answer ${turn}: ${'x'.repeat(2_000)}`;

function summary(facts: readonly string[]): { text: string } {
  const whole = { goals: ['to talk'], facts, pending: [], lastOutputDigest: 'the last answer', note: '' };
  return { text: JSON.stringify(whole) };
}

/** Says which answers it was shown, and what it was told of the others. */
function summariser(): ScriptedModel {
  return scriptedModel(({ prompt }) => {
    const sent = said(prompt);
    const answers = [...sent.matchAll(/answer (\d+): x/g)].map(([, turn]) => turn);
    const before = /covers ([\d ]+)\./.exec(sent)?.[1];
    return summary([`covers ${[...(before === undefined ? [] : [before]), ...answers].join(' ')}.`]);
  });
}

const compactedIn = async ({ journal }: Pick<Life, 'journal'>): Promise<Extract<Entry, { kind: 'compacted' }>[]> => {
  const records = await journal.list({ user: 'ana', session: 's', limit: 100 });
  const entries = await Promise.all(records.map(({ identity }) => journal.read(identity.run)));
  return entries.flat().filter((entry) => entry.kind === 'compacted');
};

describe('a summary of older turns', () => {
  it('is made by the run that finds them too long, and is what the next one starts from in another process', async () => {
    const path = temporaryFile();
    const { tools } = bookings();
    const first = summariser();
    const lifeOf = (answers: number, model: ScriptedModel): Promise<Life> =>
      life({
        ...{ path, tools },
        answers: [
          claudeSays(use('toolu_a', 'book', { what: 'a room' })),
          ...Array.from({ length: answers }, (_, index) => claudeSays(text(long(index + 1)))),
        ],
        react: { compaction: { budgetTokens: 6_000, summariser: model } },
      });
    const one = await lifeOf(5, first);
    for (let turn = 1; turn <= 5; turn += 1) await one.say(`turn ${turn}`);
    expect(first.calls).toHaveLength(0);
    expect(await compactedIn(one)).toEqual([]);
    await one.say('turn 6');
    const [made] = await compactedIn(one);
    expect(made).toMatchObject({ before: 0, step: 0, earlier: expect.any(String) });
    expect(made?.made).toEqual([expect.stringContaining('in an earlier turn: book {"what":"a room"}')]);
    const sent = said(messagesOf(one.requests.at(-1)));
    expect(sent).toContain('covers 1 2 3.');
    expect(sent).toContain('book {');
    expect(sent).not.toContain('answer 2: x');
    expect(sent).toContain('answer 4: x');
    await one.close();

    const second = summariser();
    const two = await life({
      ...{ path, tools },
      answers: [claudeSays(text('Fine.'))],
      react: { compaction: { budgetTokens: 6_000, summariser: second } },
    });
    await two.say('turn 7');
    const next = messagesOf(two.requests[0]);
    // What the run before was sent, its answer, and the new message.
    const before = messagesOf(one.requests.at(-1));
    expect(said(next.slice(0, before.length))).toBe(said(before));
    expect(next).toHaveLength(before.length + 2);
    expect(second.calls).toHaveLength(0);
    await two.close();
  });

  it('covers the one before it, and is found also when the run that made it has left the window', async () => {
    const path = temporaryFile();
    const model = summariser();
    const made = await life({
      path,
      answers: Array.from({ length: 24 }, (_, index) => claudeSays(text(index < 14 ? long(index + 1) : 'Short.'))),
      react: { compaction: { budgetTokens: 6_000, summariser: model } },
      more: { memory: { strategy: 'window', turns: 6 } },
    });
    for (let turn = 1; turn <= 24; turn += 1) await made.say(`turn ${turn}`);
    const all = await compactedIn(made);
    expect(all.length).toBeGreaterThan(1);
    const last = all[0];
    const facts = last?.summary.facts.join(' ') ?? '';
    expect(facts).toContain('covers 1 2 3 4');
    const sent = said(messagesOf(made.requests.at(-1)));
    expect(sent).toContain(facts);
    await made.close();
  });

  it('is no more than that where nobody can write one: the window leaves the oldest out', async () => {
    const path = temporaryFile();
    const made = await life({
      path,
      answers: Array.from({ length: 8 }, (_, index) => claudeSays(text(long(index + 1)))),
      react: { compaction: { budgetTokens: 6_000, summariser: scriptedModel(() => ({ text: 'I will not.' })) } },
    });
    for (let turn = 1; turn <= 8; turn += 1)
      expect(await made.say(`turn ${turn}`)).toMatchObject({ status: 'finished' });
    expect(await compactedIn(made)).toEqual([]);
    expect(said(messagesOf(made.requests.at(-1)))).toContain('Earlier turns of this conversation are left out.');
    await made.close();
  });

  it('of a run that summed up its own steps as well stands in its place', async () => {
    let written = 0;
    const journal = memoryJournal();
    const model = scriptedModel(({ prompt }, index) => {
      if (said(prompt).includes('and now?')) return { text: 'Done.' };
      return index < 9 && index > 0
        ? { calls: [{ tool: 'echo', args: { index, pad: 'y'.repeat(900) } }] }
        : { text: `said ${index}` };
    });
    const made = world({
      planner: react({
        model,
        compaction: { budgetTokens: 2_600, summariser: scriptedModel(() => summary([`covers all, ${++written}.`])) },
      }),
      tools: [
        {
          name: 'echo',
          description: 'echo',
          inputSchema: { type: 'object' },
          effect: 'pure',
          execute: (args: unknown) => args,
        },
      ] as never,
      memory: { strategy: 'window' },
      journal,
    });
    const identity = (run: string) => local('ana', { session: 's', run });
    await (await start(made, { query: 'first', identity: identity('one') })).result();
    await (await start(made, { query: 'second', identity: identity('two') })).result();
    const [last] = (await compactedIn({ journal })).slice(-1);
    expect(last).toMatchObject({ earlier: 'one' });
    expect(last?.before).toBeGreaterThan(0);
    await (await start(made, { query: 'and now?', identity: identity('three') })).result();
    const sent = said(model.calls.at(-1)?.prompt);
    expect(sent).not.toContain('"text":"first"');
    expect(sent.indexOf('second')).toBeLessThan(sent.indexOf('covers all, '));
    await made.runtime.close();
  });
});

describe('what a turn goes on from', () => {
  const path = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => ({ run: `r${from + index}`, head: 2 }));
  const ids = ({ runs }: ReturnType<typeof continuedAfter>): string => runs.map(({ run }) => run).join(' ');

  it('is what its parent was told and the parent itself, until the window is full', () => {
    const continues = { runs: path(3, 5), turns: 4 };
    expect(ids(continuedAfter(path(2, 6), { compaction: null, continues }, 4))).toBe('r3 r4 r5 r6');
    const full = { runs: path(3, 6), turns: 4 };
    expect(ids(continuedAfter(path(3, 7), { compaction: null, continues: full }, 4))).toBe('r6 r7');
  });

  it('begins behind what the parent has summed up, and carries the newest summary on', () => {
    const continues = { runs: path(3, 6), turns: 9 };
    const compaction = { summary: {} as never, before: 0, tokenEstimate: 1, earlier: 'r5' };
    const next = continuedAfter(path(1, 7), { compaction, continues }, 9);
    expect(ids(next)).toBe('r6 r7');
    expect(next.summary).toEqual({ run: 'r7', head: 2 });
    const later = continuedAfter(path(1, 8), { compaction: null, continues: next }, 9);
    expect(ids(later)).toBe('r6 r7 r8');
    expect(later.summary).toEqual({ run: 'r7', head: 2 });
  });
});
