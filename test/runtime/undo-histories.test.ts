/** Whatever a run has done before it ends without its goal: the world is as it was, but for what the ending names. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Decision, JsonObject } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-undo-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Kind = 'sure' | 'stubborn' | 'plain' | 'free' | 'fails';
interface Made {
  readonly kind: Kind;
  readonly n: number;
}

/** Things that are there, and tools that make them: not all can be taken away. */
function workshop() {
  const there = new Set<number>();
  const made = (kind: Kind, more: Partial<Tool>): Tool =>
    make(
      kind,
      ({ n }) => {
        there.add(Number(n));
        return { n };
      },
      { effect: 'keyed', ...more },
    );
  const undo: Tool['undo'] = (_, value) => ({ tool: 'remove', args: value });
  const tools = [
    made('sure', { undo }),
    made('stubborn', { undo: (_, value) => ({ tool: 'resist', args: value }) }),
    made('plain', {}),
    made('free', { undo: () => undefined }),
    make('fails', () => Promise.reject(new Error('no')), { undo }),
    make('remove', ({ n }) => there.delete(Number(n)), { effect: 'keyed' }),
    make('resist', () => Promise.reject(new Error('no')), { effect: 'keyed', retries: 0 }),
  ];
  return { there, tools };
}

const kind = fc.constantFrom<Kind>('sure', 'stubborn', 'plain', 'free', 'fails');
const history = fc.array(fc.array(kind, { minLength: 1, maxLength: 4 }), { maxLength: 6 }).map((steps): Made[][] => {
  let n = 0;
  return steps.map((kinds) =>
    kinds.map((each) => {
      n += 1;
      return { kind: each, n };
    }),
  );
});

function decisionOf(step: readonly Made[]): Decision {
  const branches = step.map(({ kind: tool, n }) => ({ tool, args: { n } }));
  const [only] = branches;
  if (only !== undefined && branches.length === 1) return { kind: 'call_tool', ...only };
  return { kind: 'call_parallel', branches };
}

describe('a run that sees no way', () => {
  it.each([
    ['memory', () => memoryJournal({ clock: new VirtualClock() })],
    ['sqlite', () => sqliteJournal({ path: join(folder, `${crypto.randomUUID()}.db`), clock: new VirtualClock() })],
  ])('leaves nothing but what it names, and what nobody can undo: %s', async (_, open) => {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const journal = open();
        const { there, tools } = workshop();
        const planner = script(...steps.map(decisionOf), { kind: 'finish', reason: 'no_path' });
        const made = world({ planner, tools, journal, onFail: 'undo' });
        const run = await start(made);
        const result = await run.result();
        expect(result).toMatchObject({ status: 'finished', reason: 'no_path' });
        const all = steps.flat();
        const kept = all.filter(({ kind: of }) => of === 'stubborn' || of === 'plain' || of === 'free');
        expect([...there].sort((a, b) => a - b)).toEqual(kept.map(({ n }) => n));
        const undo = ((result as { metadata?: JsonObject }).metadata?.['undo'] ?? {}) as Record<string, unknown[]>;
        expect(undo['undone'] ?? []).toHaveLength(all.filter(({ kind: of }) => of === 'sure').length);
        expect(undo['undo_failed'] ?? []).toHaveLength(all.filter(({ kind: of }) => of === 'stubborn').length);
        const places = (await run.state()).steps.flatMap(({ undoes }) =>
          undoes === undefined ? [] : [JSON.stringify(undoes)],
        );
        expect(new Set(places).size).toBe(places.length);
        await made.runtime.close();
        await journal.close();
      }),
      { numRuns: 20 },
    );
  });
});
