import assert from 'node:assert/strict';
import type { Append, Claim, SessionMemory, SessionSummary, SessionTurn } from '#journal';
import {
  ana,
  ben,
  createClaimed,
  expectCode,
  identity,
  type JournalBench,
  type JournalCase,
  LEASE_MS,
  newRun,
  present,
  step,
} from './kit.ts';

const NOTHING: SessionMemory = { count: 0, turns: [] };

function turn(run: string, assistant: string | null = `answer of ${run}`): SessionTurn {
  return { run, user: `query of ${run}`, assistant, at: 7 };
}

function summary(updatedAt: number, more: Partial<SessionSummary> = {}): SessionSummary {
  return { text: `text ${updatedAt}`, covers: 2, health: 'healthy', failures: 0, updatedAt, ...more };
}

/** What ends the run that was claimed. */
function ending(claim: Claim, more: Partial<Append> = {}): Append {
  return step(claim, claim.head, { status: 'finished', turn: turn(claim.run), ...more });
}

async function endedRuns(journal: JournalBench['journal'], count: number): Promise<SessionTurn[]> {
  const runs = Array.from({ length: count }, (_, index) => `run${index}`);
  for (const run of runs) await journal.append(ending(await createClaimed(journal, run)));
  return runs.map((run) => turn(run));
}

export const sessionMemoryCases: readonly JournalCase[] = [
  {
    name: 'a turn is written with the ending of its run, once',
    async run({ journal }) {
      const scope = identity('r1');
      assert.deepEqual(await journal.memory.read(scope, 10), NOTHING);
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1));
      assert.deepEqual(await journal.memory.read(scope, 10), NOTHING);
      const odd: SessionTurn = { run: 'r1', user: 'Ünï €😀 "\\\n', assistant: null, at: 7 };
      await journal.append(step(claim, 2, { status: 'failed', turn: odd }));
      await journal.append(step(claim, 3, { turn: turn('r1') }));
      assert.deepEqual(await journal.memory.read(scope, 10), { count: 1, turns: [odd] });
    },
  },
  {
    name: 'an append that is refused writes no turn',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await expectCode(journal.append(ending(claim, { expected: 4, entries: [] })), 'journal_conflict');
      await expectCode(journal.append(ending(claim, { turn: turn('r2') })), 'invalid_config');
      await expectCode(journal.append(ending(claim, { turn: { ...turn('r1'), at: 0.5 } })), 'invalid_config');
      clock.advance(LEASE_MS);
      const heir = present(await journal.claim({ ...ben, run: 'r1' }));
      await expectCode(journal.append(ending(claim)), 'lease_lost');
      assert.deepEqual(await journal.memory.read(identity('r1'), 10), NOTHING);
      assert.equal((await journal.get('r1'))?.head, 1);
      await journal.append(ending(heir));
      assert.equal((await journal.memory.read(identity('r1'), 10)).count, 1);
    },
  },
  {
    name: 'the newest turns are read, oldest first, and from an index on',
    async run({ journal }) {
      const turns = await endedRuns(journal, 5);
      const read = async (limit: number, from?: number): Promise<readonly SessionTurn[]> => {
        const memory = await journal.memory.read(identity('any'), limit, from);
        assert.equal(memory.count, 5);
        return memory.turns;
      };
      assert.deepEqual(await read(10), turns);
      assert.deepEqual(await read(5), turns);
      assert.deepEqual(await read(2), turns.slice(3));
      assert.deepEqual(await read(0), []);
      assert.deepEqual(await read(10, 3), turns.slice(3));
      assert.deepEqual(await read(1, 3), turns.slice(4));
      assert.deepEqual(await read(10, 5), []);
      assert.deepEqual(await read(10, 50), []);
      for (const [limit, from] of [
        [-1, 0],
        [0.5, 0],
        [1, -1],
      ] as const) {
        await expectCode(journal.memory.read(identity('any'), limit, from), 'invalid_config');
      }
    },
  },
  {
    name: 'turns that are written at the same time are all kept',
    async run({ journal }) {
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, index) => createClaimed(journal, `run${index}`, ana)),
      );
      await Promise.all(claims.map((claim) => journal.append(ending(claim))));
      const { count, turns } = await journal.memory.read(identity('any'), 100);
      assert.equal(count, 20);
      assert.deepEqual(new Set(turns.map(({ run }) => run)), new Set(claims.map(({ run }) => run)));
    },
  },
  {
    name: 'MS-08 a session remembers nothing of another tenant, user or session',
    async run({ journal }) {
      const others = (['tenant', 'user', 'session'] as const).map((part) => identity(`of_${part}`, { [part]: 'x' }));
      const split = identity('split', { tenant: 'acme/ana', user: 's1' });
      for (const owner of [identity('mine'), ...others, split]) {
        const claim = await journal.create(newRun(owner.run, { identity: owner, claim: ana }));
        await journal.append(ending(present(claim)));
        assert.equal(await journal.memory.summarise(owner, undefined, summary(1, { text: owner.run })), true);
      }
      for (const owner of [identity('mine'), ...others, split]) {
        const { count, turns, summary: read } = await journal.memory.read(owner, 10);
        assert.deepEqual([count, turns, read?.text], [1, [turn(owner.run)], owner.run]);
      }
      assert.deepEqual(await journal.memory.read(identity('mine', { session: 's2' }), 10), NOTHING);
      const nobody = identity('mine', { user: ' ' });
      await expectCode(journal.memory.read(nobody, 1), 'identity_required');
      await expectCode(journal.memory.summarise(nobody, undefined, summary(1)), 'identity_required');
    },
  },
  {
    name: 'a summary is replaced only by who has seen it',
    async run({ journal }) {
      const scope = identity('r1');
      const stored = async (): Promise<SessionSummary | undefined> => (await journal.memory.read(scope, 0)).summary;
      assert.equal(await journal.memory.summarise(scope, 5, summary(6)), false);
      assert.equal(await stored(), undefined);
      assert.equal(await journal.memory.summarise(scope, undefined, summary(10)), true);
      assert.equal(await journal.memory.summarise(scope, undefined, summary(11)), false);
      assert.deepEqual(await stored(), summary(10));
      const both = await Promise.all([
        journal.memory.summarise(scope, 10, summary(20, { health: 'retrying', failures: 1 })),
        journal.memory.summarise(scope, 10, summary(21)),
      ]);
      assert.deepEqual(both.toSorted(), [false, true]);
      assert.deepEqual(await stored(), both[0] ? summary(20, { health: 'retrying', failures: 1 }) : summary(21));
      await expectCode(journal.memory.summarise(scope, 20, summary(30, { covers: -1 })), 'invalid_config');
      await expectCode(journal.memory.summarise(scope, 20, summary(30.5)), 'invalid_config');
    },
  },
  {
    name: 'turns that were read stay as they are',
    async run({ journal }) {
      const [first] = await endedRuns(journal, 1);
      const { turns } = await journal.memory.read(identity('any'), 10);
      assert.ok(Object.isFrozen(turns[0]));
      await journal.append(ending(await createClaimed(journal, 'later')));
      assert.deepEqual(turns, [first]);
    },
  },
];
