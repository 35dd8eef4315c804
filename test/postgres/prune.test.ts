/** Retention: all stores let go of the same runs, whatever was stored, and never of what is alive. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Started } from '#core';
import { type Journal, memoryJournal, type NewRun, type PruneRequest, type RunRecord } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { sqliteJournal } from '#journal/sqlite';
import { ana, identity, newRun, startedEntry, step, VirtualClock } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { emptied, sharedPool } from './emptied.ts';

const STATUSES = ['finished', 'failed', 'cancelled'] as const;
const HOUR = 3_600_000;

/** A run that is stored; `task`: by which of the runs before it that are open, if there is one. */
interface Stored {
  readonly session: number;
  readonly kind: 'turn' | 'aside' | 'task';
  readonly of: number;
  readonly hours: number;
}

/** A run ends, by its place among those that are open; `goesOn`: another one goes on with it. */
interface Ended {
  readonly ends: number;
  readonly status: (typeof STATUSES)[number];
  readonly goesOn: boolean;
  readonly hours: number;
}

const hours = fc.integer({ min: 0, max: 30 });
const stored: fc.Arbitrary<Stored> = fc.record({
  session: fc.integer({ min: 0, max: 2 }),
  kind: fc.constantFrom('turn', 'aside', 'aside', 'task', 'task'),
  of: fc.nat(20),
  hours,
});
const ended: fc.Arbitrary<Ended> = fc.record({
  ends: fc.nat(20),
  status: fc.constantFrom(...STATUSES),
  goesOn: fc.boolean(),
  hours,
});
const story = fc.array(fc.oneof({ weight: 2, arbitrary: stored }, { weight: 3, arbitrary: ended }), {
  maxLength: 30,
  size: '+1',
});
const request: fc.Arbitrary<PruneRequest> = fc.record({
  olderThanMs: fc.integer({ min: 0, max: 20 }).map((number) => number * HOUR),
  status: fc.subarray([...STATUSES], { minLength: 1 }),
});

class Play {
  readonly journal: Journal;
  readonly #clock: VirtualClock;
  readonly #open: { run: string; session: string; root: string; fence: number; head: number }[] = [];
  #count = 0;

  constructor(journal: Journal, clock: VirtualClock) {
    this.journal = journal;
    this.#clock = clock;
  }

  async tell(each: Stored | Ended): Promise<void> {
    if ('ends' in each) await this.#end(each);
    else await this.#store(each);
    this.#clock.advance(each.hours * HOUR);
  }

  #started(session: string, more: Partial<Started>): NewRun {
    this.#count += 1;
    const own = identity(`r${this.#count}`, { session });
    return newRun(own.run, { identity: own, entries: [startedEntry(own, more)], claim: ana });
  }

  async #store({ session, kind, of }: Stored): Promise<void> {
    const above = kind === 'task' ? this.#open[of % Math.max(1, this.#open.length)] : undefined;
    if (above === undefined) {
      const start = this.#started(`s${session}`, kind === 'turn' ? {} : { conversation: false });
      await this.journal.create(start);
      this.#opened(start, start.identity.run);
      return;
    }
    const { run, root, fence } = above;
    const task = {
      parent: run,
      root,
      depth: 1,
      kind: 'background',
      description: '',
      group: 'g',
      onCancel: 'isolate',
    } as const;
    const start = this.#started(above.session, { task, conversation: false });
    await this.journal.append(step({ run, fence }, above.head, { starts: [start] }));
    above.head += 1;
    this.#opened(start, root);
  }

  #opened({ identity: { run, session } }: NewRun, root: string): void {
    this.#open.push({ run, session, root, fence: 1, head: 1 });
  }

  async #end({ ends, status, goesOn }: Ended): Promise<void> {
    const [own] = this.#open.splice(ends % Math.max(1, this.#open.length), 1);
    if (own === undefined) return;
    const { run, root, session, fence, head } = own;
    if (goesOn && root === run && status === 'finished') {
      const start = this.#started(session, { conversation: false });
      const next = { run: start.identity.run, agent: 'other' };
      const entries = [{ kind: 'finished', reason: 'handed_over', successor: next, seq: head + 1, at: 1 } as const];
      await this.journal.append({ run, fence, expected: head, entries, status, starts: [start] });
      this.#opened(start, start.identity.run);
    } else await this.journal.append(step({ run, fence }, head, { status }));
    await this.journal.release({ run, fence }, { seenSignals: 0 });
  }

  async left(): Promise<readonly RunRecord[]> {
    return (await this.journal.list({ limit: 200 })).toReversed();
  }
}

/** What is alive, or was changed since, by the records before. */
function assertSpared(
  before: readonly RunRecord[],
  left: readonly string[],
  { olderThanMs, status }: PruneRequest,
): void {
  const isGone = ({ identity: { run } }: RunRecord): boolean => !left.includes(run);
  const top = ({ identity: { run }, root }: RunRecord): string => root ?? run;
  for (const one of before.filter(isGone)) {
    const tree = before.filter((other) => top(other) === top(one));
    expect(tree.every(isGone)).toBe(true);
    for (const { status: how, updatedAt, readAt } of tree) {
      expect(STATUSES).toContain(how);
      expect(updatedAt).toBeLessThanOrEqual(readAt - olderThanMs);
    }
    expect(status).toContain(tree.find(({ root }) => root === undefined)?.status);
    if (one.turn === undefined) continue;
    const turns = before.filter(
      ({ turn, identity: { session } }) => turn !== undefined && session === one.identity.session,
    );
    expect(turns.every(isGone)).toBe(true);
  }
}

describe('retention in all stores', async () => {
  const pool = sharedPool(await postgresUrl(), 2);
  const schemaFor = emptied(pool);

  it('lets go of the same runs, and of no tree, conversation or chain in part', async () => {
    await fc.assert(
      fc.asyncProperty(story, request, async (told, asked) => {
        const schema = await schemaFor(crypto.randomUUID());
        const opens = [
          (clock: VirtualClock) => memoryJournal({ clock }),
          (clock: VirtualClock) => sqliteJournal({ path: temporaryFile(), clock, synchronous: 'normal' }),
          (clock: VirtualClock) => postgresJournal({ pool }, { clock, schema }),
        ];
        const seen: (readonly string[])[] = [];
        for (const open of opens) {
          const clock = new VirtualClock();
          const play = new Play(open(clock), clock);
          try {
            for (const each of told) await play.tell(each);
            const before = await play.left();
            const { runs: wouldGo } = await play.journal.prune({ ...asked, dryRun: true });
            const { runs, next } = await play.journal.prune(asked);
            const left = (await play.left()).map(({ identity: { run } }) => run);
            expect([runs, wouldGo, next]).toEqual([before.length - left.length, runs, undefined]);
            assertSpared(before, left, asked);
            seen.push(left);
          } finally {
            await play.journal.close();
          }
        }
        expect(seen[1]).toEqual(seen[0]);
        expect(seen[2]).toEqual(seen[0]);
      }),
      { numRuns: 20 },
    );
  });
});
