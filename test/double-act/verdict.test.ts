/** The verdict of the kit, and the person in it: what they must find, and what they must not take for a fault. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, type JsonObject, local, type Tool } from '#pilotage';
import type { Decision } from '#pilotage/planner';
import { foldEntries } from '#state';
import { seededRandom } from '#testing';
import { cuts, script } from './cuts.ts';
import { FEE, letter, ROOM } from './errands.ts';
import { type LedgerLine, note } from './ledger.ts';
import { answerTo } from './person.ts';
import { problemsOf, type Witness } from './verdict.ts';
import { SECRET } from './world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-verdict-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LETTER = letter('Hello.');
const wanted = [FEE, LETTER, ROOM];

/** A run that did what was wanted, each in a step of its own, and its ledger. */
async function witness(): Promise<Witness> {
  const journal = memoryJournal();
  const ledger: LedgerLine[] = [];
  const tools = wanted.map(
    ({ tools: [name = ''], effect }): Tool => ({
      name,
      description: name,
      inputSchema: { type: 'object' },
      effect,
      execute: (args, { idempotencyKey: key, identity: { run } }) => {
        const { subject } = args as { subject: string };
        const line = { tool: name, subject, args: args as JsonObject, run, key, pid: 1, attempt: key, at: 0 };
        ledger.push({ ...line, what: 'entered' }, { ...line, what: 'done', value: null }, { ...line, what: 'left' });
        return null;
      },
    }),
  );
  const planner = ({ trajectory }: { trajectory: { count: number } }): Decision => {
    const next = wanted[trajectory.count];
    if (next === undefined) return { kind: 'finish', reason: 'goal' };
    return { kind: 'call_tool', tool: next.tools[0] ?? '', args: next.args };
  };
  const runtime = createRuntime({ planner, tools, journal });
  const run = await runtime.start('go', { identity: local('ana', { run: 'play' }) });
  await run.result();
  const entries = await journal.read(run.id);
  const record = await journal.get(run.id);
  await runtime.close();
  return { cut: 'kill', ledger, asked: wanted, wanted, tree: [{ entries, record, state: foldEntries(entries) }] };
}

const sound = await witness();
const doneOf = (subject: string): LedgerLine => {
  const line = sound.ledger.find((each) => each.what === 'done' && each.subject === subject);
  if (line === undefined) throw new Error(`${subject} was not done.`);
  return line;
};
const withLine = (line: LedgerLine): Witness => ({ ...sound, ledger: [...sound.ledger, line] });

describe('the verdict', () => {
  it('finds nothing in a run that did each thing once, and the keyed one again under its key', () => {
    const nothing = { twice: [], unasked: [], lost: [], denied: [], other: [] };
    expect(problemsOf(sound)).toEqual(nothing);
    expect(problemsOf(withLine(doneOf('room')))).toEqual(nothing);
  });

  it('finds what happened twice: once under the same key, under another, and by another tool', () => {
    for (const again of [{}, { key: 'another' }, { tool: 'wire', key: 'another' }]) {
      expect(problemsOf(withLine({ ...doneOf('fee'), ...again })).twice).toHaveLength(1);
    }
    expect(problemsOf(withLine({ ...doneOf('room'), key: 'another' })).twice).toHaveLength(1);
  });

  it('finds what nobody asked for: another subject, other arguments, another tool, a secret', () => {
    const fee = doneOf('fee');
    const strange: Partial<LedgerLine>[] = [
      { subject: 'gift', args: { subject: 'gift', amount: 5 } },
      { args: { subject: 'fee', amount: 50 } },
      { tool: 'wire' },
      { args: { subject: 'fee', amount: 5, body: SECRET } },
    ];
    for (const line of strange) {
      const ledger = sound.ledger.filter((each) => each !== fee);
      expect(problemsOf({ ...sound, ledger: [...ledger, { ...fee, ...line }] }).unasked).toHaveLength(1);
    }
  });

  it('finds what never happened, and what the journal denies', () => {
    const [root] = sound.tree;
    if (root === undefined) throw new Error('There is no run.');
    expect(problemsOf({ ...sound, ledger: [] }).lost).toHaveLength(3);
    const entries = root.entries.map((entry) =>
      entry.kind === 'call_ended' && entry.step === 0
        ? { ...entry, outcome: { kind: 'cancelled' as const, error: { code: 'cancelled', message: 'Stopped.' } } }
        : entry,
    );
    const denying = { ...sound, tree: [{ ...root, entries, state: foldEntries(entries) }] };
    expect(problemsOf(denying).denied).toHaveLength(1);
  });

  it('finds a run without an end, one that gave up, and a journal with a gap', () => {
    const [root] = sound.tree;
    if (root === undefined) throw new Error('There is no run.');
    const { entries } = root;
    const last = entries.at(-1);
    if (last?.kind !== 'finished') throw new Error('It has not finished.');
    const ended = entries.slice(0, -1);
    const other = [ended, [...ended, { ...last, reason: 'no_path' as const }]].map(
      (each) => [each, foldEntries(each)] as const,
    );
    for (const [each, state] of [...other, [entries.toSpliced(3, 1), root.state] as const]) {
      expect(problemsOf({ ...sound, tree: [{ ...root, entries: each, state }] }).other).not.toEqual([]);
    }
  });
});

describe('the person', () => {
  const line: LedgerLine = { ...doneOf('fee'), what: 'entered', run: 'asked', key: 'k', attempt: 'a', pid: 7 };
  const pause = { run: 'asked', payload: { key: 'k' } };
  const around = { folder, isAnyStill: () => false, isAlive: (pid: number) => pid === 7 };

  it('answers only when nobody stands still and nobody is at it, and then the truth', () => {
    expect(answerTo(pause, around)).toEqual({ happened: false });
    note(folder, line);
    expect(answerTo(pause, around)).toBeUndefined();
    expect(answerTo(pause, { ...around, isAlive: () => false })).toEqual({ happened: false });
    note(folder, { ...line, what: 'done', value: { receipt: 'r' } });
    expect(answerTo(pause, around)).toBeUndefined();
    note(folder, { ...line, what: 'left' });
    expect(answerTo(pause, around)).toEqual({ happened: true, value: { receipt: 'r' } });
    expect(answerTo(pause, { ...around, isAnyStill: () => true })).toBeUndefined();
    expect(answerTo({ ...pause, payload: { key: 'other' } }, around)).toEqual({ happened: false });
  });
});

it('gives the same script for the same seed, and comes by every place', () => {
  for (const cut of cuts) {
    const scripts = Array.from({ length: 200 }, (_, seed) => JSON.stringify(script(cut, seededRandom(seed))));
    expect(scripts).toEqual(scripts.map((_, seed) => JSON.stringify(script(cut, seededRandom(seed)))));
  }
  const places = new Set(Array.from({ length: 200 }, (_, seed) => script('stop', seededRandom(seed)).trap?.place));
  expect(places).toEqual(new Set([undefined, 'begin', 'began', 'entered', 'done', 'ending', 'ended']));
});
