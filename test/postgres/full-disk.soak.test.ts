/** The server has no room for what is written, for a while. Its answers are made up: a disk that is full cannot be had without rights. */
import { afterAll, describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { postgresJournal } from '#journal/postgres';
import { createRuntime } from '#pilotage';
import { createClaimed, expectCode, newRun, sequence, step } from '#testing';
import { telling } from '../crash/telling.ts';
import { PostgresServer } from '../kit/postgres.ts';
import { TcpProxy } from '../kit/tcp-proxy.ts';
import { Acknowledged, Ledger, planner, result, STEPS, startAll } from './agents.ts';

const FIELDS = ['SERROR', 'VERROR', 'C53100', 'Mcould not extend file "base/5/16384": No space left on device'];

/** What the server says instead of carrying the statement out. Its transaction, if there is one, has not failed and is rolled back. */
function noRoom(): Buffer {
  const fields = Buffer.from(`${FIELDS.join('\0')}\0\0`);
  const error = Buffer.alloc(5);
  error.write('E');
  error.writeUInt32BE(4 + fields.length, 1);
  return Buffer.concat([error, fields, Buffer.from([0x5a, 0, 0, 0, 5, 'E'.charCodeAt(0)])]);
}

describe('a full disk', async () => {
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());

  /** Each statement that adds rows is told so, until there is room. The texts of statements go with each of them. */
  async function onSmallDisk(schema: string) {
    const proxy = await TcpProxy.start(server.port);
    const journal = postgresJournal({ url: proxy.url }, { schema, transactionPooler: true });
    let refused = 0;
    const full = (bytes: Buffer): Buffer | undefined => {
      if (!bytes.includes('INSERT INTO')) return undefined;
      refused += 1;
      return noRoom();
    };
    return {
      journal,
      fill: () => proxy.answer(full),
      makeRoom: () => proxy.answer(undefined),
      get refused() {
        return refused;
      },
      async close() {
        await journal.close();
        await proxy.close();
      },
    };
  }

  it('refuses what adds to the journal, and takes it when there is room', async () => {
    const disk = await onSmallDisk('refused');
    const { journal } = disk;
    const claim = await createClaimed(journal, 'run');
    const told = () => journal.signal('run', { id: 'c1', type: 'USER_MESSAGE', payload: { text: 'a' } });
    disk.fill();
    const error = await expectCode(journal.append(step(claim, 1)), 'journal_full');
    expect(error.message).toMatch(/no room left .*No space left on device.* make room and try again/);
    await expectCode(told(), 'journal_full');
    await expectCode(journal.create(newRun('turn')), 'journal_full');
    expect(await sequence(journal, 'run')).toEqual([1]);
    expect(await journal.renew([claim], 1_000)).toEqual([0]);
    disk.makeRoom();
    await journal.append(step(claim, 1));
    await told();
    await journal.create(newRun('turn'));
    expect(await sequence(journal, 'run')).toEqual([1, 2]);
    expect((await journal.inbox('run')).length).toBe(1);
    await disk.close();
  });

  it('holds runs up until there is room: nothing is lost or done twice', async () => {
    const disk = await onSmallDisk('held_up');
    const [ledger, acknowledged] = [new Ledger(), new Acknowledged()];
    const faults: unknown[] = [];
    const runtime = createRuntime({
      planner,
      tools: [...ledger.tools],
      journal: telling(disk.journal, (entry, run) => acknowledged.add(entry, run)),
      onFault: (error) => void faults.push(error),
    });
    const runs = await startAll(runtime, 6);
    await ledger.reached(12);
    disk.fill();
    // Runs share statements: for so many, some have to be refused for longer than the six seconds after which a run is let go of.
    while (disk.refused < 12) await new Promise((resolve) => setTimeout(resolve, 5));
    disk.makeRoom();
    for (const run of runs) {
      expect(await result(runtime, run)).toMatchObject({ status: 'finished', payload: `done ${STEPS}` });
    }
    expect(ledger.repeated).toEqual([]);
    expect(ledger.done.size).toBe(6 * STEPS);
    expect(await acknowledged.lost(disk.journal)).toEqual([]);
    expect(faults.filter((fault) => !PilotageError.is(fault, 'journal_full'))).toEqual([]);
    await runtime.close();
    await disk.close();
  });
});
