/** Turns of sessions: their order, which of them wait, and messages that are accepted once. */
import assert from 'node:assert/strict';
import type { Identity } from '#core';
import type { Journal, NewRun, RunStatus, Sending } from '#journal';
import {
  ana,
  ben,
  claimFirst,
  control,
  expectCode,
  identity,
  type JournalCase,
  LEASE_MS,
  newRun,
  newTask,
  present,
  startedEntry,
  step,
} from './kit.ts';

const SCOPE = { tenant: 'acme', user: 'ana', session: 's1' };

/** A message that begins the turn `run`. */
function sending(run: string, live: string | null, more: Partial<Sending> = {}, start: Partial<NewRun> = {}): Sending {
  return {
    scope: SCOPE,
    known: { run, control: `message_${run}` },
    seen: { live: live === null ? null : { run: live }, branch: null },
    starts: newRun(run, { waits: 'last', ...start }),
    ...more,
  };
}

/** A message that is told to the turn `run`. */
function telling(run: string, id: string): Sending {
  return {
    scope: SCOPE,
    known: { run: `own-${id}`, control: `message_${id}` },
    seen: { live: { run }, branch: null },
    tells: [{ run, message: control(`message_${id}`) }],
  };
}

async function endTurn(
  journal: Journal,
  run: string,
  status: RunStatus = 'finished',
  starts: readonly NewRun[] = [],
): Promise<void> {
  const claim = present(await journal.claim({ ...ana, run }));
  await journal.append(step(claim, claim.head, { status, starts }));
}

/** The turns in their order, those that wait in brackets. */
async function order(journal: Journal): Promise<string[]> {
  const turns = await journal.list({ ...SCOPE, beforeTurn: 1_000, limit: 200 });
  return turns.reverse().map(({ identity: { run }, waits }) => (waits === true ? `(${run})` : run));
}

const due = async (journal: Journal): Promise<string | undefined> => (await claimFirst(journal, ana))?.run;

export const sessionCases: readonly JournalCase[] = [
  {
    name: 'turns are numbered in the order of acceptance; tasks and runs beside the conversation have no number',
    async run({ journal }) {
      await journal.create(newRun('r1'));
      await journal.create(newRun('other', { entries: [startedEntry(identity('other'), { conversation: false })] }));
      await journal.create(newTask('task', 'r1'));
      await journal.create(newRun('elsewhere', { identity: identity('elsewhere', { session: 's2' }) }));
      await journal.send(sending('r2', 'r1'));
      const number = async (run: string): Promise<number | undefined> => (await journal.get(run))?.turn;
      assert.deepEqual(await Promise.all(['r1', 'other', 'task', 'elsewhere', 'r2'].map(number)), [
        1,
        undefined,
        undefined,
        1,
        2,
      ]);
      assert.deepEqual(
        (await journal.list({ ...SCOPE, beforeTurn: 2 })).map(({ identity: { run } }) => run),
        ['r1'],
      );
    },
  },
  {
    name: 'a turn that waits is due when the turns before it have ended, whatever is said to it',
    async run({ journal }) {
      assert.deepEqual(Object.keys(await journal.send(sending('r1', null))), ['claim']);
      await journal.send(sending('r2', 'r1'));
      await journal.send(sending('r3', 'r1'));
      assert.deepEqual(await order(journal), ['r1', '(r2)', '(r3)']);
      assert.equal((await journal.get('r2'))?.wakeAt, null);
      await journal.signal('r2', control('c1'));
      assert.equal(await due(journal), 'r1');
      assert.equal(await due(journal), undefined);
      const lease = present(await journal.claim({ ...ana, run: 'r1', from: 'ana' }));
      await journal.append(step(lease, lease.head, { status: 'finished' }));
      assert.deepEqual(await order(journal), ['r1', 'r2', '(r3)']);
      assert.equal(await due(journal), 'r2');
      assert.equal(await due(journal), undefined);
    },
  },
  {
    name: 'a turn that waits can be claimed by its name, which says so, and is given back as it was',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1', {}, { claim: ana }));
      const claim = present(await journal.claim({ ...ana, run: 'r2' }));
      assert.equal(claim.waits, true);
      await journal.release(claim, { seenSignals: claim.signals, asBefore: claim.before });
      assert.deepEqual(await order(journal), ['r1', '(r2)']);
      await endTurn(journal, 'r1');
      assert.equal(await due(journal), 'r2');
    },
  },
  {
    name: 'a turn that waits is pending again when it is let go of, whatever it was and whatever was said to it',
    async run({ journal, clock }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      const status = async (): Promise<RunStatus | undefined> => (await journal.get('r2'))?.status;
      const claim = present(await journal.claim({ ...ana, run: 'r2' }));
      assert.equal(await status(), 'running');
      assert.equal(await journal.release(claim, { seenSignals: claim.signals }), true);
      assert.equal(await status(), 'pending');
      const second = present(await journal.claim({ ...ana, run: 'r2' }));
      await journal.append(step(second, second.head, { status: 'paused' }));
      await journal.signal('r2', control('c1'));
      assert.equal(await journal.release(second, { seenSignals: second.signals, asBefore: second.before }), false);
      assert.equal(await status(), 'pending');
      const third = present(await journal.claim({ ...ana, run: 'r2' }));
      await journal.release(third, { seenSignals: third.signals, status: 'waiting', wakeInMs: 5 });
      assert.equal(await status(), 'pending');
      assert.equal((await journal.get('r2'))?.wakeAt, null);
      clock.advance(LEASE_MS);
      assert.equal(await due(journal), 'r1');
      assert.equal(await due(journal), undefined);
    },
  },
  {
    name: 'a turn that waits is due when whoever had it was silent for the lease, and is left alone when it is let go of',
    async run({ journal, clock }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      assert.equal(await due(journal), 'r1');
      await journal.claim({ ...ana, run: 'r2' });
      clock.advance(LEASE_MS - 1);
      await journal.renew([{ run: 'r1', fence: 1 }], LEASE_MS);
      assert.equal(await due(journal), undefined);
      clock.advance(1);
      assert.equal((await journal.get('r2'))?.wakeAt, undefined);
      const claim = present(await claimFirst(journal, ben));
      assert.deepEqual([claim.run, claim.waits], ['r2', true]);
      await journal.release(claim, { seenSignals: claim.signals, asBefore: claim.before });
      const { status, wakeAt } = present(await journal.get('r2'));
      assert.deepEqual([status, wakeAt], ['pending', null]);
      assert.equal(await due(journal), undefined);
    },
  },
  {
    name: 'a turn that is ended while it waits lets nobody pass the turn that is under way',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      await journal.send(sending('r3', 'r1'));
      await endTurn(journal, 'r2', 'cancelled');
      assert.deepEqual(await order(journal), ['r1', 'r2', '(r3)']);
      assert.deepEqual((await journal.sessions.get(SCOPE))?.live, { run: 'r1', status: 'pending', signals: 0 });
      await endTurn(journal, 'r1');
      assert.equal(await due(journal), 'r3');
    },
  },
  {
    name: 'a turn that comes next stands before those that were put last, behind those that came next before it',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      await journal.send(sending('r3', 'r1', {}, { waits: 'next' }));
      assert.deepEqual(await order(journal), ['r1', '(r3)', '(r2)']);
      await endTurn(journal, 'r1', 'finished', [newRun('r4', { waits: 'next' })]);
      assert.deepEqual(await order(journal), ['r1', 'r3', '(r4)', '(r2)']);
      assert.equal(await due(journal), 'r3');
      assert.equal(await due(journal), undefined);
      // What goes on with a turn goes before them all.
      const lease = present(await journal.claim({ ...ana, run: 'r3', from: 'ana' }));
      const starts = [newRun('r5', { waits: 'first' }), newRun('r6', { waits: 'next' })];
      await journal.append(step(lease, lease.head, { status: 'finished', starts }));
      assert.deepEqual(await order(journal), ['r1', 'r3', 'r5', '(r4)', '(r6)', '(r2)']);
    },
  },
  {
    name: 'a start outside of the conversation, under the id of a turn, changes nothing: the next turn comes when that one ends',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      const claim = present(await journal.claim({ ...ana, run: 'r1' }));
      const other = startedEntry(identity('r1'), { conversation: false });
      assert.equal(await journal.create(newRun('r1', { entries: [other] })), undefined);
      await journal.append(step(claim, claim.head, { status: 'finished' }));
      assert.deepEqual(await order(journal), ['r1', 'r2']);
    },
  },
  {
    name: 'a run that waits for nobody stands before the turns that wait, which wait for it too',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      await journal.send(sending('r3', 'r1', {}, { waits: 'next' }));
      await journal.create(newRun('beside'));
      assert.deepEqual(await order(journal), ['r1', 'beside', '(r3)', '(r2)']);
      await journal.send(sending('r4', 'beside', {}, { waits: 'next' }));
      await endTurn(journal, 'r1');
      assert.deepEqual(await order(journal), ['r1', 'beside', '(r3)', '(r4)', '(r2)']);
      await endTurn(journal, 'beside');
      assert.deepEqual(await order(journal), ['r1', 'beside', 'r3', '(r4)', '(r2)']);
    },
  },
  {
    name: 'a turn that has ended keeps its number, also one that was cancelled while it waited',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      await endTurn(journal, 'r2', 'cancelled');
      await endTurn(journal, 'r1');
      await journal.create(newRun('beside'));
      await journal.send(sending('r3', 'beside'));
      await endTurn(journal, 'beside', 'finished', [newRun('r4', { waits: 'next' })]);
      assert.deepEqual(await order(journal), ['r1', 'r2', 'beside', 'r4', '(r3)']);
      assert.equal((await journal.sessions.get(SCOPE))?.waiting, 1);
    },
  },
  {
    name: 'what belongs to a session counts in no other, also when somebody knows its ids',
    async run({ journal }) {
      const other = identity('theirs', { session: 's2' });
      await journal.create(newRun('theirs', { identity: other }));
      await journal.signal('theirs', control('message_m'));
      await journal.create(newRun('taken', { identity: identity('taken', { session: 's2' }) }));
      await journal.send(sending('r1', null));
      assert.deepEqual(await journal.send(telling('r1', 'm')), { claim: undefined });
      assert.deepEqual(await journal.send(telling('r1', 'm')), { run: 'r1' });
      await expectCode(journal.send(sending('taken', 'r1')), 'scope_mismatch');
      assert.deepEqual(await order(journal), ['r1']);
    },
  },
  {
    name: 'nobody switches to another branch while a turn is under way',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await expectCode(journal.sessions.set(SCOPE, { branch: 'r1', title: 'T' }), 'session_busy');
      assert.equal((await journal.sessions.get(SCOPE))?.title, undefined);
      await endTurn(journal, 'r1');
      await journal.sessions.set(SCOPE, { branch: 'r1' });
      assert.equal((await journal.sessions.get(SCOPE))?.branch, 'r1');
      // The session was deleted, and begun anew, since somebody looked at it.
      await journal.sessions.delete(SCOPE);
      await expectCode(journal.sessions.set(SCOPE, { branch: 'r1' }), 'run_not_found');
      assert.equal(await journal.sessions.get(SCOPE), undefined);
      await journal.send(sending('r2', null));
      await endTurn(journal, 'r2');
      const elsewhere = identity('r3', { session: 'another' });
      await journal.create(newRun('r3', { identity: elsewhere }));
      for (const branch of ['r1', 'r3']) await expectCode(journal.sessions.set(SCOPE, { branch }), 'run_not_found');
      assert.equal((await journal.sessions.get(SCOPE))?.branch, undefined);
    },
  },
  {
    name: 'a turn that was cancelled while it waited and is repaired comes to its turn',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      await endTurn(journal, 'r2', 'cancelled');
      await endTurn(journal, 'r1');
      const { head, signals } = await journal.examine('r2');
      const request = { run: 'r2', head, signals, keep: head, entries: [], agent: 'function', drops: [], waits: [] };
      await journal.repair({ ...request, status: 'running' });
      assert.equal((await journal.sessions.get(SCOPE))?.live?.run, 'r2');
      assert.equal((await journal.get('r2'))?.waits, undefined);
    },
  },
  {
    name: 'a message is accepted once, as a turn or by a turn that hears it',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      assert.deepEqual(await journal.send(sending('r1', null)), { run: 'r1' });
      await journal.send(telling('r1', 'm'));
      assert.deepEqual(await journal.send(telling('r1', 'm')), { run: 'r1' });
      assert.equal((await journal.inbox('r1')).length, 1);
      const again = { ...sending('own-m', 'r1'), known: { run: 'own-m', control: 'message_m' } };
      assert.deepEqual(await journal.send(again), { run: 'r1' });
      assert.equal(await journal.get('own-m'), undefined);
    },
  },
  {
    name: 'a message is refused when the session is not as its sender has seen it, and nothing is stored',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await expectCode(journal.send(sending('r2', null)), 'session_changed');
      const seen = { live: { run: 'r1', signals: 0 }, branch: null };
      await journal.send({ ...telling('r1', 'm1'), seen });
      await expectCode(journal.send({ ...telling('r1', 'm2'), seen }), 'session_changed');
      await endTurn(journal, 'r1');
      await expectCode(journal.send(telling('r1', 'm2')), 'session_changed');
      const asNew = { seen: { live: null, branch: null, isNew: true } } as const;
      await expectCode(journal.send(sending('r2', null, asNew)), 'session_changed');
      await journal.send(
        sending(
          's2',
          null,
          { scope: { ...SCOPE, session: 's2' }, ...asNew },
          { identity: identity('s2', { session: 's2' }) },
        ),
      );
      await journal.sessions.set(SCOPE, { branch: 'r1' });
      await expectCode(journal.send(sending('r2', null)), 'session_changed');
      await journal.send(sending('r2', null, { seen: { live: null, branch: 'r1' } }));
      assert.equal((await journal.sessions.get(SCOPE))?.branch, undefined);
      assert.deepEqual(await order(journal), ['r1', 'r2']);
    },
  },
  {
    name: 'a failed turn is not reopened while another turn is under way',
    async run({ journal }) {
      await journal.send(sending('r1', null));
      await journal.send(sending('r2', 'r1'));
      await endTurn(journal, 'r1', 'failed');
      const error = await expectCode(journal.claim({ ...ana, run: 'r1', reopens: true }), 'session_busy');
      assert.equal(error.data?.['run'], 'r2');
      await endTurn(journal, 'r2');
      const claim = present(await journal.claim({ ...ana, run: 'r1', reopens: true }));
      // A message came first.
      await journal.send(sending('r3', null));
      const { fence, head } = claim;
      const entries = [{ kind: 'reopened', seq: head + 1, at: 0 }] as const;
      const reopened = { run: 'r1', fence, expected: head, entries, status: 'running' } as const;
      await expectCode(Promise.resolve(journal.append(reopened)), 'session_busy');
      assert.equal((await journal.get('r1'))?.status, 'failed');
      await endTurn(journal, 'r3');
      await journal.append(reopened);
      assert.equal((await journal.sessions.get(SCOPE))?.live?.run, 'r1');
    },
  },
  {
    name: 'sessions are listed by their newest turns, in pages, by user, time, name and title',
    async run({ journal, clock }) {
      const made: Identity[] = [];
      for (const [user, session] of [
        ['ana', 'a'],
        ['ana', 'b'],
        ['ben', 'a'],
        ['ana', 'c'],
        ['ana', 'a'],
      ] as const) {
        clock.advance(1_000);
        const id = identity(`${user}-${session}-${made.length}`, { user, session });
        made.push(id);
        await journal.create(newRun(id.run, { identity: id }));
      }
      const from = clock.now() - 1_000;
      await journal.sessions.set({ tenant: 'acme', user: 'ana', session: 'b' }, { title: 'A trip to Rome' });
      const names = async (query: object): Promise<string[]> =>
        (await journal.sessions.list({ tenant: 'acme', ...query })).map(({ user, session }) => `${user}/${session}`);
      assert.deepEqual(await names({}), ['ana/a', 'ana/c', 'ben/a', 'ana/b']);
      assert.deepEqual(await names({ user: 'ana' }), ['ana/a', 'ana/c', 'ana/b']);
      assert.deepEqual(await names({ since: from }), ['ana/a', 'ana/c']);
      assert.deepEqual(await names({ text: 'ROME' }), ['ana/b']);
      assert.deepEqual(await names({ text: '%' }), []);
      const odd = { tenant: 'acme', user: 'ana', session: 'c' };
      await journal.sessions.set(odd, { title: "Über 100% 'günstig'_\\ \u0000 \u{1F600}\n--" });
      for (const text of ['ÜBER', '100%', "günstig'", '_\\', '\u0000 \u{1F600}', '--']) {
        assert.deepEqual(await names({ text }), ['ana/c'], text);
      }
      for (const text of ['über_', '100_', '%%', '*']) assert.deepEqual(await names({ text }), [], text);
      const [, second] = await journal.sessions.list({ tenant: 'acme', limit: 2 });
      assert.deepEqual(await names({ limit: 2, after: present(second) }), ['ben/a', 'ana/b']);
      assert.deepEqual(await journal.sessions.list({ tenant: 'else' }), []);
      await expectCode(journal.sessions.list({ tenant: 'acme', limit: 201 }), 'invalid_config');
      const first = present(await journal.sessions.get({ tenant: 'acme', user: 'ana', session: 'a' }));
      assert.deepEqual([first.turns, first.waiting, first.live?.run], [2, 0, 'ana-a-4']);
      assert.equal(await journal.sessions.get({ tenant: 'acme', user: 'ana', session: 'none' }), undefined);
    },
  },
  {
    name: 'a session is deleted with its runs, tasks, messages and artifacts, and no other',
    async run({ journal, clock }) {
      await journal.send(sending('r1', null));
      await journal.create(newTask('task', 'r1'));
      await journal.send(telling('r1', 'm'));
      const { artifactRef } = await journal.artifacts.put(SCOPE, Buffer.from('x'), { mime: 'text/plain' });
      await journal.create(newRun('other', { identity: identity('other', { session: 's2' }) }));
      const claim = present(await journal.claim({ ...ana, run: 'r1' }));
      await expectCode(journal.sessions.delete(SCOPE), 'session_busy');
      clock.advance(ana.leaseMs + 1);
      assert.equal(await journal.sessions.delete(SCOPE), 2);
      await expectCode(journal.append(step(claim, 1)), 'run_not_found');
      assert.equal(await journal.get('r1'), undefined);
      assert.equal(await journal.artifacts.get(SCOPE, artifactRef), undefined);
      assert.equal(await journal.sessions.get(SCOPE), undefined);
      assert.equal((await journal.list({})).length, 1);
      assert.deepEqual(Object.keys(await journal.send(sending('r1', null))), ['claim']);
      await journal.send(telling('r1', 'm'));
      assert.equal((await journal.inbox('r1')).length, 1);
    },
  },
  {
    name: 'the fork of a run whose session was deleted meanwhile is not stored, and one that is there is not stored twice',
    async run({ journal }) {
      const fork = (id: string, run: string): NewRun =>
        newRun(id, { entries: [startedEntry(identity(id), { fork: { run, step: 0, entries: 1, effects: 'held' } })] });
      await journal.create(newRun('r1'));
      await journal.create(fork('f1', 'r1'));
      assert.equal(await journal.create(fork('f1', 'gone')), undefined);
      await journal.sessions.delete(SCOPE);
      await expectCode(journal.create(fork('f2', 'r1')), 'run_not_found');
      assert.equal(await journal.get('f2'), undefined);
      assert.deepEqual(await journal.list({}), []);
    },
  },
  {
    name: 'a turn in the place of one whose session was deleted meanwhile is not stored, and one that is there is known',
    async run({ journal }) {
      const inPlaceOf = (id: string, replaces: string): Sending => {
        const turn = { messages: [{ id }], replaces };
        return sending(id, null, {}, { entries: [startedEntry(identity(id), { turn })] });
      };
      await journal.send(sending('r1', null));
      await endTurn(journal, 'r1');
      await journal.send(inPlaceOf('r2', 'r1'));
      await endTurn(journal, 'r2');
      assert.deepEqual(await journal.send(inPlaceOf('r2', 'gone')), { run: 'r2' });
      await journal.sessions.delete(SCOPE);
      await expectCode(journal.send(inPlaceOf('r3', 'r1')), 'run_not_found');
      assert.equal(await journal.get('r3'), undefined);
      assert.equal(await journal.sessions.get(SCOPE), undefined);
    },
  },
  {
    name: 'whoever watches a session hears of new turns, and of turns that have come to their turn',
    async run({ journal }) {
      let wakes = 0;
      const stop = journal.watchSession(SCOPE, () => {
        wakes += 1;
      });
      const heard = async (act: Promise<unknown>): Promise<void> => {
        const before = wakes;
        await act;
        while (wakes === before) await new Promise((resolve) => setImmediate(resolve));
      };
      await heard(journal.send(sending('r1', null)));
      await heard(journal.send(sending('r2', 'r1')));
      await heard(endTurn(journal, 'r1'));
      await endTurn(journal, 'r2');
      await heard(journal.sessions.delete(SCOPE));
      stop();
    },
  },
];
