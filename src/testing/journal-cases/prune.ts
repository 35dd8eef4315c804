/** Retention: what goes, what stays because something that is left needs it, and a deletion beside other work. */
import assert from 'node:assert/strict';
import type { Finished, Started } from '#core';
import type { Journal, NewRun, PruneRequest, RunStatus } from '#journal';
import type { VirtualClock } from '../time-and-chance.ts';
import {
  ana,
  ben,
  control,
  createWaiting,
  delivered,
  eventWait,
  expectCode,
  identity,
  type JournalCase,
  LEASE_MS,
  newRun,
  newSignal,
  newTask,
  present,
  startedEntry,
  step,
} from './kit.ts';

const DAY = 86_400_000;
const ENDED = ['finished', 'failed', 'cancelled'] as const;

/** All parts of the work, one after another. */
async function prune(journal: Journal, more: Partial<PruneRequest> = {}): Promise<number> {
  let runs = 0;
  for (let after = 0; ; ) {
    const pruned = await journal.prune({ olderThanMs: DAY, status: ENDED, after, ...more });
    runs += pruned.runs;
    if (pruned.next === undefined) return runs;
    assert.ok(pruned.next > after, 'the place to go on from does not move');
    after = pruned.next;
  }
}

/** A run beside the conversation of its session. */
function aside(run: string, session = 'jobs', more: Partial<Started> = {}, start: Partial<NewRun> = {}): NewRun {
  const id = identity(run, { session });
  return newRun(run, { identity: id, entries: [startedEntry(id, { conversation: false, ...more })], ...start });
}

async function end(journal: Journal, run: string, status: RunStatus = 'finished', more = {}): Promise<void> {
  const claim = present(await journal.claim({ ...ana, run }));
  await journal.append(step(claim, claim.head, { status, ...more }));
  await journal.release(claim, { seenSignals: claim.signals });
}

async function ended(journal: Journal, run: NewRun, status: RunStatus = 'finished'): Promise<void> {
  await journal.create(run);
  await end(journal, run.identity.run, status);
}

async function left(journal: Journal): Promise<string[]> {
  return (await journal.list({ limit: 200 })).map(({ identity: { run } }) => run).sort();
}

/** The last entry of a run with which another one goes on. */
function handedOver(seq: number, run: string): Finished & { readonly seq: number; readonly at: number } {
  return Object.freeze({ kind: 'finished', reason: 'handed_over', successor: { run, agent: 'other' }, seq, at: seq });
}

export const pruneCases: readonly JournalCase[] = [
  {
    name: 'a deletion of old runs takes those that ended long enough ago, as they were to have ended',
    async run({ journal, clock }) {
      await ended(journal, aside('finished'));
      await ended(journal, aside('failed'), 'failed');
      await ended(journal, aside('cancelled'), 'cancelled');
      await ended(journal, aside('theirs', 'jobs', {}, { identity: identity('theirs', { tenant: 'other' }) }));
      await journal.create(aside('pending'));
      clock.advance(DAY - 1);
      assert.equal(await prune(journal), 0);
      clock.advance(1);
      await ended(journal, aside('young'));
      const kept = ['pending', 'young'];
      assert.equal(await prune(journal, { dryRun: true }), 4);
      assert.equal((await left(journal)).length, 6);
      assert.equal(await prune(journal, { tenant: 'acme', status: ['finished'] }), 1);
      assert.deepEqual(await left(journal), ['cancelled', 'failed', 'theirs', ...kept].sort());
      assert.equal(await prune(journal, { status: ['failed', 'cancelled'] }), 2);
      assert.deepEqual(await left(journal), ['theirs', ...kept].sort());
      assert.equal(await prune(journal), 1);
      assert.equal(await prune(journal), 0);
      assert.deepEqual(await left(journal), kept);
      assert.equal(await prune(journal, { olderThanMs: 0 }), 1);
    },
  },
  {
    name: 'a deletion of old runs refuses what cannot be meant',
    async run({ journal }) {
      const request = { olderThanMs: DAY, status: ENDED };
      await expectCode(journal.prune({ ...request, olderThanMs: -1 }), 'invalid_config');
      await expectCode(journal.prune({ ...request, olderThanMs: Number.NaN }), 'invalid_config');
      await expectCode(journal.prune({ ...request, status: [] }), 'invalid_config');
      await expectCode(journal.prune({ olderThanMs: DAY } as PruneRequest), 'invalid_config');
      const paused = ['finished', 'paused'] as unknown as PruneRequest['status'];
      await expectCode(journal.prune({ ...request, status: paused }), 'invalid_config');
      await expectCode(journal.prune({ ...request, after: -1 }), 'invalid_config');
    },
  },
  {
    name: 'of a run that was deleted as old nothing is left',
    async run({ journal, clock }) {
      const labels = { order: '17' };
      const claim = present(await journal.create(aside('r1', 'jobs', { labels }, { claim: ana })));
      await journal.signal('r1', control('c1'));
      await journal.snapshots.keep({
        ...claim,
        version: 1,
        head: 1,
        body: Buffer.from('a'),
        from: 0,
        blocks: [Buffer.from('b')],
      });
      await journal.streams.append({ ...claim, step: 0, call: 0, attempt: 1, rows: [{ name: 'log', value: 'x' }] });
      await journal.append(step(claim, 1, { status: 'finished' }));
      await journal.release(claim, { seenSignals: 1 });
      clock.advance(DAY);
      assert.equal(await prune(journal), 1);
      assert.equal(await journal.get('r1'), undefined);
      await expectCode(journal.read('r1'), 'run_not_found');
      await expectCode(journal.inbox('r1'), 'run_not_found');
      await expectCode(journal.streams.list('r1'), 'run_not_found');
      await expectCode(Promise.resolve(journal.append(step(claim, 2))), 'run_not_found');
      assert.equal(await journal.claim({ ...ben, run: 'r1', reopens: true }), undefined);
      assert.deepEqual(await journal.list({ labels }), []);
      // The id is free, and what was there before is not.
      const again = present(await journal.create(aside('r1', 'jobs', {}, { claim: ana })));
      assert.equal((await journal.read('r1')).length, 1);
      assert.deepEqual(await journal.inbox('r1'), []);
      assert.equal(await journal.signal('r1', control('c1')), true);
      assert.deepEqual(await journal.streams.list('r1'), []);
      assert.equal(await journal.snapshots.newest('r1', 1), undefined);
      await journal.append(step(again, 1));
    },
  },
  {
    name: 'a tree of runs goes as a whole, when its last run has ended long ago',
    async run({ journal, clock }) {
      const root = aside('root', 's1');
      const claim = present(await journal.create({ ...root, claim: ana }));
      await journal.append(step(claim, 1, { starts: [newTask('t1', 'root'), newTask('t2', 'root')] }));
      const task = present(await journal.claim({ ...ana, run: 't1' }));
      await journal.append(step(task, 1, { starts: [newTask('t1.1', 't1', 'root')], status: 'failed' }));
      await journal.append(step(claim, 2, { status: 'finished' }));
      await end(journal, 't2');
      clock.advance(2 * DAY);
      assert.equal(await prune(journal), 0);
      await end(journal, 't1.1', 'cancelled');
      clock.advance(DAY - 1);
      assert.equal(await prune(journal, { status: ['finished'] }), 0);
      clock.advance(1);
      assert.equal(await prune(journal, { status: ['failed', 'cancelled'] }), 0);
      assert.equal((await left(journal)).length, 4);
      assert.equal(await prune(journal, { status: ['finished'] }), 4);
      assert.deepEqual(await left(journal), []);
    },
  },
  {
    name: 'a conversation goes with its whole session, and stays while one of its runs does',
    async run({ journal, clock }) {
      const scope = { tenant: 'acme', user: 'ana', session: 's1' };
      await ended(journal, newRun('r1'));
      clock.advance(2 * DAY);
      await ended(journal, newRun('r2'), 'failed');
      await journal.sessions.set(scope, { title: 'Tea' });
      await ended(journal, aside('beside', 's1'));
      clock.advance(DAY - 1);
      // The last turn is told of the one before.
      assert.equal(await prune(journal), 0);
      clock.advance(1);
      await journal.create(newRun('r3'));
      // What has a conversation no more is deleted by itself.
      assert.equal(await prune(journal), 1);
      await end(journal, 'r3', 'cancelled');
      clock.advance(DAY);
      assert.equal(await prune(journal, { status: ['finished', 'cancelled'] }), 0);
      assert.deepEqual(await left(journal), ['r1', 'r2', 'r3']);
      assert.equal((await journal.sessions.get(scope))?.title, 'Tea');
      assert.equal(await prune(journal, { dryRun: true }), 3);
      assert.equal(await prune(journal), 3);
      assert.equal(await journal.sessions.get(scope), undefined);
      await journal.create(newRun('r4'));
      const session = present(await journal.sessions.get(scope));
      assert.deepEqual([session.turns, session.title], [1, undefined]);
    },
  },
  {
    name: 'artifacts go with the last run of their session',
    async run({ journal, clock }) {
      const scope = { tenant: 'acme', user: 'ana', session: 'jobs' };
      await journal.artifacts.put(scope, Buffer.from('kept'), { mime: 'text/plain' });
      await ended(journal, aside('r1'));
      clock.advance(DAY);
      await ended(journal, aside('r2'));
      await ended(journal, aside('elsewhere', 'other'));
      assert.equal(await prune(journal), 1);
      assert.equal((await journal.artifacts.list(scope, 10)).total, 1);
      clock.advance(DAY);
      // For a run that is to be stored next.
      const { artifactRef } = await journal.artifacts.put(scope, Buffer.from('new'), { mime: 'text/plain' });
      assert.equal(await prune(journal), 2);
      const { rows } = await journal.artifacts.list(scope, 10);
      assert.deepEqual(
        rows.map((row) => row.artifactRef),
        [artifactRef],
      );
      assert.ok((await journal.artifacts.get(scope, artifactRef)) !== undefined);
    },
  },
  {
    name: 'the lease under which a run has ended does not hold it back; one that was reopened is not deleted',
    async run({ journal, clock }) {
      const first = present(await journal.create(aside('r0', 'jobs', {}, { claim: ana })));
      await journal.append(step(first, 1, { status: 'finished' }));
      assert.equal(await prune(journal, { olderThanMs: 0 }), 1);
      await ended(journal, aside('r1'), 'failed');
      clock.advance(DAY);
      const claim = present(await journal.claim({ ...ana, run: 'r1', reopens: true }));
      // Nobody has gone on with it yet.
      assert.equal(await prune(journal, { dryRun: true }), 1);
      clock.advance(LEASE_MS);
      const reopened = { kind: 'reopened' as const, seq: 3, at: 3 };
      await journal.append({ run: 'r1', fence: claim.fence, expected: 2, entries: [reopened], status: 'running' });
      assert.equal(await prune(journal), 0);
      await end(journal, 'r1');
      assert.equal(await prune(journal), 0);
      clock.advance(DAY);
      assert.equal(await prune(journal), 1);
    },
  },
  {
    name: 'a run with which another one has gone on stays as long as that one',
    async run({ journal, clock }) {
      const claim = present(await journal.create(aside('r1', 'jobs', {}, { claim: ana })));
      const starts = [aside('r2')];
      await journal.append(step(claim, 1, { entries: [handedOver(2, 'r2')], status: 'finished', starts }));
      await journal.release(claim, { seenSignals: 0 });
      clock.advance(DAY);
      assert.equal(await prune(journal), 0);
      await end(journal, 'r2');
      assert.equal(await prune(journal), 0);
      clock.advance(DAY);
      await ended(journal, aside('fork'));
      await journal.create(aside('open'));
      // What is under way may be a fork of the one that went on, which was told of the first.
      assert.equal(await prune(journal, { dryRun: true }), 1);
      await end(journal, 'open');
      assert.equal(await prune(journal), 2);
      assert.deepEqual(await left(journal), ['fork', 'open']);
    },
  },
  {
    name: 'a start counts under its key as long as it would have, when its run is deleted',
    async run({ journal, clock }) {
      const rate = { kind: 'rate', key: 'k', limit: 1, perMs: 3 * DAY } as const;
      const singleton = { kind: 'singleton', key: 'k' } as const;
      await journal.startByKey(aside('r1'), rate);
      await journal.startByKey(aside('r2'), singleton);
      await end(journal, 'r1');
      await end(journal, 'r2');
      clock.advance(DAY);
      assert.equal(await prune(journal), 2);
      await expectCode(journal.startByKey(aside('r3'), rate), 'rate_limited');
      assert.deepEqual(await journal.startByKey(aside('r2'), singleton), { run: 'r2' });
      clock.advance(2 * DAY);
      assert.deepEqual(await journal.startByKey(aside('r4'), rate), { run: 'r4' });
    },
  },
  {
    name: 'signals that a deleted run had not taken go to who waits for them, and those over their time are gone',
    async run({ journal, clock }) {
      const claim = await createWaiting(journal, 'r1', eventWait(0, 'a'));
      const scope = aside('r2', 'jobs');
      await journal.events.signal(newSignal('a', 's1', { keepMs: 10 * DAY }));
      await journal.events.signal(newSignal('b', 's2', { keepMs: DAY }));
      await journal.append(step(claim, 2, { status: 'cancelled' }));
      await journal.release(claim, { seenSignals: 1 });
      clock.advance(DAY);
      const second = present(await journal.create({ ...scope, claim: ana }));
      await journal.append(step(second, 1, { waits: { adds: [eventWait(0, 'a')] } }));
      assert.equal(await prune(journal), 1);
      assert.deepEqual(await delivered(journal, 'r2'), ['1.0.0 s1']);
      assert.deepEqual(await journal.events.list({ tenant: 'acme' }), []);
      // Its id is known as long as it was to be.
      assert.equal((await journal.events.signal(newSignal('a', 's1'))).isNew, false);
    },
  },
  {
    name: 'many old runs are deleted part by part, and no part looks at the same runs again',
    async run({ journal, clock }) {
      const runs = Array.from({ length: 230 }, (_, number) => `r${String(number).padStart(3, '0')}`);
      for (const run of runs) await journal.create(aside(run, `of ${run}`, {}, { claim: ana }));
      // Those in front stay.
      for (const run of runs.slice(120)) {
        const entries = [{ ...step({ run, fence: 1 }, 1), status: 'finished' as const }];
        for (const append of entries) await journal.append(append);
      }
      clock.advance(DAY);
      const first = await journal.prune({ olderThanMs: DAY, status: ENDED });
      assert.ok(first.runs < 110 && first.next !== undefined, 'a call has done the whole work');
      assert.equal(await prune(journal, { after: first.next }), 110 - first.runs);
      assert.equal((await journal.list({ status: ['running'], limit: 200 })).length, 120);
      assert.equal(await prune(journal), 0);
    },
  },
  {
    name: 'a deletion beside an append, a claim and a reopening at the same moment leaves whole runs or none',
    run: ({ journal, clock }) => besideOthers(journal, journal, clock),
  },
];

export const pruneBesideCases: readonly JournalCase[] = [
  {
    name: 'a deletion beside an append, a claim and a reopening by another process leaves whole runs or none',
    run: async ({ journal, clock, open }) => besideOthers(journal, await open(), clock),
  },
];

async function besideOthers(journal: Journal, second: Journal, clock: VirtualClock): Promise<void> {
  for (let round = 0; round < 12; round += 1) {
    const [failed, finished, live] = [`failed${round}`, `finished${round}`, `live${round}`];
    await ended(journal, aside(failed), 'failed');
    const claim = present(await journal.create(aside(live, 's1', {}, { claim: { ...ana, leaseMs: 100 * LEASE_MS } })));
    await ended(journal, aside(finished));
    clock.advance(DAY);
    const [pruned, reopened, , started] = await Promise.all([
      prune(journal),
      second.claim({ ...ben, run: failed, reopens: true }),
      Promise.resolve(second.append(step(claim, 1, { starts: [newTask(`${live}.t`, live)] }))),
      second.claim({ ...ben, run: finished, reopens: true }),
    ]);
    assert.equal(started, undefined);
    assert.equal(await journal.get(finished), undefined);
    const isLeft = (await journal.get(failed)) !== undefined;
    assert.equal(pruned, isLeft ? 1 : 2);
    if (isLeft) await second.append(step(present(reopened), 2, { status: 'failed' }));
    else if (reopened !== undefined)
      await expectCode(Promise.resolve(second.append(step(reopened, 2))), 'run_not_found');
    assert.equal((await journal.read(live)).length, 2);
    await end(journal, `${live}.t`);
    await journal.append(step(claim, 2, { status: 'cancelled' }));
    // What this round has left goes before the next one.
    clock.advance(DAY);
    assert.equal(await prune(journal), isLeft ? 3 : 2);
  }
}
