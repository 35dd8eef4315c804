/** Connections that break at a byte of an exchange with the server: what was asked, what is asked again, and what it must have come to. */
import { expect } from 'vitest';
import { type Clock, type Message, PilotageError } from '#core';
import { type Append, appendAgain, type Journal, patiently } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { identity, newRun, newTask, sequence, step, stepEntry } from '#testing';
import type { PostgresServer } from '../kit/postgres.ts';
import { type Direction, TcpProxy } from '../kit/tcp-proxy.ts';

/** One thing that is asked of the journal. */
interface Asked {
  act(journal: Journal): Promise<unknown>;
  /** The same once more, as those who use a journal do after the error. */
  again(journal: Journal, error: unknown): Promise<unknown>;
  /** Looks what it has come to. */
  verify(): Promise<void>;
}

export interface Exchange {
  readonly name: string;
  /** @param direct the journal, on a way that is not cut. */
  stage(direct: Journal, id: string): Promise<Asked>;
}

/** Waits do not last. */
const clock: Clock = { now: () => Date.now(), after: (_, run) => immediately(run) };
const ana = { owner: 'ana', leaseMs: 60_000 };

function immediately(run: () => void): () => void {
  const waiting = setImmediate(run);
  return () => clearImmediate(waiting);
}

function appended(request: Append, verify: () => Promise<void>): Asked {
  return {
    act: async (journal) => journal.append(request),
    again: (journal, error) => appendAgain({ journal, clock }, request, error),
    verify,
  };
}

async function claimed(direct: Journal, run: string) {
  const claim = await direct.create(newRun(run, { identity: identity(run, { session: run }), claim: ana }));
  if (claim === undefined) throw new Error(`The run ${run} was there.`);
  return claim;
}

/** What waits in the inbox of a run. */
async function messagesOf(journal: Journal, run: string): Promise<Message[]> {
  return (await journal.inbox(run)).map(({ message }) => message);
}

const CONTROL = { id: 'c1', type: 'USER_MESSAGE', payload: { text: 'Go on.' } } as const;

export const exchanges: readonly Exchange[] = [
  {
    name: 'an append',
    async stage(direct, id) {
      const claim = await claimed(direct, id);
      const request = step(claim, 1, { entries: [stepEntry(2), stepEntry(3, 'ä€😀')] });
      return appended(request, async () => expect((await direct.read(id)).slice(1)).toEqual(request.entries));
    },
  },
  {
    name: 'an append that ends a turn, starts a task and tells another run',
    async stage(direct, id) {
      const claim = await claimed(direct, id);
      await direct.signal(id, CONTROL);
      await direct.create(newRun(`${id}-other`));
      const next = identity(`${id}-next`, { session: id });
      await direct.create(newRun(next.run, { identity: next, waits: 'last' }));
      const task = newTask(`${id}-task`, id);
      const [first] = task.entries;
      const own = { ...task.identity, session: id };
      const request = step(claim, 1, {
        starts: [{ ...task, identity: own, entries: [{ ...first, identity: own } as never] }],
        treeLimit: 1,
        tells: [{ run: `${id}-other`, message: { id: 'w1', type: 'WATCH', by: id } }],
        takes: ['c1'],
        status: 'finished',
      });
      return appended(request, async () => {
        expect(await sequence(direct, id)).toEqual([1, 2]);
        expect(await sequence(direct, `${id}-task`)).toEqual([1]);
        expect((await messagesOf(direct, `${id}-other`)).map((message) => message.id)).toEqual(['w1']);
        expect(await messagesOf(direct, id)).toEqual([]);
        expect(await direct.get(id)).toMatchObject({ status: 'finished', head: 2 });
        expect((await direct.get(next.run))?.waits).toBeUndefined();
      });
    },
  },
  {
    name: 'the start of a turn',
    async stage(direct, id) {
      const run = newRun(id, { identity: identity(id, { session: id }), claim: ana });
      return {
        act: (journal) => journal.create(run),
        again: (journal) => patiently(clock, () => journal.create(run)),
        async verify() {
          expect(await sequence(direct, id)).toEqual([1]);
          const page = await direct.list({ tenant: 'acme', user: 'ana', session: id });
          expect(page.map(({ turn, status }) => `${turn} ${status}`)).toEqual(['1 running']);
        },
      };
    },
  },
  {
    name: 'a message',
    async stage(direct, id) {
      await claimed(direct, id);
      const signal = (journal: Journal) => journal.signal(id, CONTROL);
      return {
        act: signal,
        again: (journal) => patiently(clock, () => signal(journal)),
        verify: async () => expect(await messagesOf(direct, id)).toEqual([CONTROL]),
      };
    },
  },
  {
    name: 'a claim',
    async stage(direct, id) {
      await direct.create(newRun(id, { identity: identity(id, { session: id }) }));
      let fence = 0;
      const claim = async (journal: Journal) => {
        // The one whose answer did not come is known to be ours.
        fence = (await journal.claim({ ...ana, run: id, from: 'ana' }))?.fence ?? 0;
      };
      return {
        act: claim,
        again: (journal) => patiently(clock, () => claim(journal)),
        async verify() {
          expect([1, 2]).toContain(fence);
          await direct.append(step({ run: id, fence }, 1));
          expect(await direct.get(id)).toMatchObject({ head: 2, lease: { owner: 'ana' } });
        },
      };
    },
  },
  {
    name: 'a release',
    async stage(direct, id) {
      const claim = await claimed(direct, id);
      const release = (journal: Journal) =>
        journal.release(claim, { seenSignals: 0, wakeInMs: null, status: 'waiting' });
      return {
        act: release,
        again: async (journal) => expect(await patiently(clock, () => release(journal))).toBe(true),
        async verify() {
          const record = await direct.get(id);
          expect(record).toMatchObject({ status: 'waiting', wakeAt: null });
          expect(record?.lease).toBeUndefined();
        },
      };
    },
  },
];

const MOST_PLACES = 16;
const LAST_PLACES = 8;

/** Places where the message before has just come whole, or has just not: every few of them, and all of the last ones. */
function edges(bytes: Buffer): number[] {
  const places = [0];
  for (let end = 0; end + 5 <= bytes.length; ) {
    end += 1 + bytes.readUInt32BE(end + 1);
    places.push(end - 1, end);
  }
  const every = Math.ceil(places.length / MOST_PLACES);
  return places.filter((_, index) => index % every === 0 || index >= places.length - LAST_PLACES);
}

export interface Cutting {
  readonly server: PostgresServer;
  readonly schema: string;
  /** At each so many bytes, counted from `fromByte`, and where messages end. */
  readonly everyBytes: number;
  readonly fromByte: number;
}

export interface CutReport {
  readonly cuts: number;
  /** How many were told that it had worked, and how many were not. */
  readonly worked: number;
  readonly failed: number;
}

/** Cuts the connection at the bytes of the exchange, one after another, and looks each time what it has come to. */
export async function cutEach(
  exchange: Exchange,
  { server, schema, everyBytes, fromByte }: Cutting,
): Promise<CutReport> {
  const proxy = await TcpProxy.start(server.port);
  const direct = postgresJournal({ url: server.url }, { schema });
  // On one connection, on which nothing is said but what is asked.
  const journal = postgresJournal({ url: proxy.url }, { schema, maxConnections: 1, transactionPooler: true });
  const report = { cuts: 0, worked: 0, failed: 0 };
  const play = async (id: string, cut: () => void): Promise<void> => {
    const asked = await exchange.stage(direct, id);
    await journal.get(id);
    cut();
    const error: unknown = await asked.act(journal).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    proxy.spare();
    if (error !== undefined) {
      if (!PilotageError.is(error, 'journal_unavailable')) throw error;
      await asked.again(journal, error);
    }
    report[error === undefined ? 'worked' : 'failed'] += 1;
    await asked.verify();
  };
  try {
    await play('whole', () => proxy.record());
    const said = { up: proxy.played('up'), down: proxy.played('down') };
    for (const direction of ['up', 'down'] as const satisfies readonly Direction[]) {
      const bytes = said[direction];
      const all = Array.from({ length: bytes.length + 1 }, (_, place) => place);
      const places = [
        ...new Set([...edges(bytes), ...all.filter((place) => place % everyBytes === fromByte % everyBytes)]),
      ];
      for (const place of places) {
        try {
          await play(`${direction}-${place}`, () => proxy.cutAfter(direction, place));
          report.cuts += 1;
        } catch (cause) {
          throw new Error(`${exchange.name}: cut after ${place} of ${bytes.length} bytes ${direction}`, { cause });
        }
      }
    }
    return report;
  } finally {
    await journal.close();
    await direct.close();
    await proxy.close();
  }
}
