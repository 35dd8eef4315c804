/** Tenants that are separated by policies: what a journal of one tenant, and SQL over its connection, can do with what is another's. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '#core';
import type { Journal } from '#journal';
import { ana, claimFirst, control, expectCode, identity, newRun, startedEntry, step } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';
import { contentOf, furnish, ours, type Separated, separated, tablesOf, theirs } from './separated.ts';

const HOUR = 3_600_000;
const RUN = `${theirs}-run`;
const scope = { tenant: theirs, user: 'ana', session: 's1' };
const lease = { run: RUN, fence: 1 };
const agents = ['finish', 'worker'];
const own = identity(`${ours}-own`, { session: 'own' });
const ofThem = newRun(`${theirs}-new`, { identity: identity(`${theirs}-new`, { tenant: theirs }) });
const schedule = { tenant: theirs, id: 'daily', agent: 'finish', definition: { n: 2 }, times: 't', nextAt: 5 };

/** What comes of it: a value, or the code of a refusal. */
interface Attempt {
  readonly does: (journal: Journal) => unknown;
  readonly gives?: unknown;
  readonly refused?: ErrorCode;
}

const finds = (does: Attempt['does'], gives: unknown): Attempt => ({ does, gives });
const refused = (does: Attempt['does'], code: ErrorCode): Attempt => ({ does, refused: code });

/** Each method of the port, tried by a journal of one tenant on what is another's. */
const ATTEMPTS: Readonly<Record<string, readonly Attempt[]>> = {
  create: [
    refused((journal) => journal.create(ofThem), 'scope_mismatch'),
    refused((journal) => journal.create({ ...ofThem, claim: ana }), 'scope_mismatch'),
    refused((journal) => journal.create(newRun(RUN, { claim: ana })), 'scope_mismatch'),
  ],
  startByKey: [
    refused((journal) => journal.startByKey(ofThem, { kind: 'singleton', key: 'nightly' }), 'scope_mismatch'),
    refused((journal) => journal.startByKey(newRun(RUN), { kind: 'singleton', key: 'mine' }), 'scope_mismatch'),
  ],
  append: [
    refused((journal) => journal.append(step(lease, 2)), 'run_not_found'),
    refused((journal) => journal.append(step(lease, 2, { status: 'finished', takes: ['m1'] })), 'run_not_found'),
    refused(
      (journal) => journal.append(step(lease, 2, { tells: [{ run: RUN, message: control('m2') }] })),
      'run_not_found',
    ),
  ],
  read: [refused((journal) => journal.read(RUN), 'run_not_found')],
  get: [finds((journal) => journal.get(RUN), undefined)],
  list: [
    finds((journal) => journal.list({}), []),
    finds((journal) => journal.list({ tenant: theirs, user: 'ana', session: 's1' }), []),
    finds((journal) => journal.list({ labels: { plan: 'pro' } }), []),
    finds((journal) => journal.list({ text: theirs }), []),
    refused((journal) => journal.list({ after: RUN }), 'run_not_found'),
  ],
  claim: [
    finds((journal) => journal.claim({ ...ana, run: RUN }), undefined),
    finds((journal) => journal.claim({ ...ana, run: RUN, from: 'ana' }), undefined),
  ],
  claimDue: [
    finds((journal) => journal.claimDue({ ...ana, limit: 10 }), []),
    finds((journal) => journal.claimDue({ ...ana, agents, limit: 10 }), []),
    finds((journal) => journal.claimDue({ ...ana, agents, exceptTenants: ['other'], limit: 10 }), []),
  ],
  claimParked: [
    finds((journal) => journal.claimParked({ ...ana, agents, limit: 10 }), []),
    finds((journal) => journal.claimParked({ ...ana, agents, limit: 10, runs: [`${theirs}-parked`] }), []),
  ],
  nextDue: [finds((journal) => journal.nextDue(agents), undefined)],
  now: [finds((journal) => Number.isInteger(journal.now?.()), true)],
  renew: [finds((journal) => journal.renew([lease], 300_000), [undefined])],
  release: [finds((journal) => journal.release(lease, { seenSignals: 9, status: 'waiting' }), true)],
  signal: [refused((journal) => journal.signal(RUN, control('m2')), 'run_not_found')],
  send: [
    refused(
      (journal) =>
        journal.send({
          ...{ scope, known: { run: ofThem.identity.run, control: 'c' }, seen: { live: null, branch: null } },
          starts: ofThem,
        }),
      'scope_mismatch',
    ),
    refused(
      (journal) =>
        journal.send({
          ...{ scope, known: { run: 'none', control: 'c' }, seen: { live: { run: RUN }, branch: null } },
          tells: [{ run: RUN, message: control('c') }],
        }),
      'session_changed',
    ),
  ],
  inbox: [refused((journal) => journal.inbox(RUN), 'run_not_found')],
  examine: [refused((journal) => journal.examine(RUN), 'run_not_found')],
  repair: [
    refused(
      (journal) =>
        journal.repair({
          ...{ run: RUN, head: 2, signals: 1, keep: 1, status: 'failed', agent: 'finish', drops: ['m1'], waits: [] },
          entries: [
            { kind: 'call_ended', step: 1, call: 0, outcome: { kind: 'value', value: 1 }, attempts: 1, seq: 2, at: 1 },
          ],
        }),
      'run_not_found',
    ),
  ],
  prune: [
    finds((journal) => journal.prune({ olderThanMs: 0, status: ['finished'] }), { runs: 0 }),
    finds((journal) => journal.prune({ olderThanMs: 0, status: ['finished'], tenant: theirs, dryRun: true }), {
      runs: 0,
    }),
  ],
  watch: [finds((journal) => journal.watch(RUN, () => {})(), undefined)],
  watchSession: [finds((journal) => journal.watchSession(scope, () => {})(), undefined)],
  watchDue: [finds((journal) => journal.watchDue(() => {})(), undefined)],
  watchRuns: [finds((journal) => journal.watchRuns(() => {})(), undefined)],
  'artifacts.put': [
    refused((journal) => journal.artifacts.put(scope, Uint8Array.of(1), { mime: 'a/b' }), 'scope_mismatch'),
    refused(
      (journal) => journal.artifacts.put({ ...scope, tenant: `${ours}x` }, Uint8Array.of(1), { mime: 'a/b' }),
      'scope_mismatch',
    ),
  ],
  'artifacts.get': [finds(async (journal) => journal.artifacts.get(scope, await referenceOf(theirs)), undefined)],
  'artifacts.list': [finds((journal) => journal.artifacts.list(scope, 10), { rows: [], total: 0 })],
  'artifacts.erase': [finds((journal) => journal.artifacts.erase(scope), 0)],
  'sessions.get': [finds((journal) => journal.sessions.get(scope), undefined)],
  'sessions.list': [
    finds((journal) => journal.sessions.list({ tenant: theirs }), []),
    finds((journal) => journal.sessions.list({ tenant: theirs, user: 'ana', text: 'globex' }), []),
  ],
  'sessions.set': [finds((journal) => journal.sessions.set(scope, { title: 'mine' }), undefined)],
  'sessions.delete': [finds((journal) => journal.sessions.delete(scope), 0)],
  'schedules.put': [refused((journal) => journal.schedules.put(schedule), 'scope_mismatch')],
  'schedules.get': [finds((journal) => journal.schedules.get(theirs, 'daily'), undefined)],
  'schedules.list': [finds((journal) => journal.schedules.list({ tenant: theirs }), [])],
  'schedules.due': [
    finds(
      async (journal) => {
        const { due, nextAt } = await journal.schedules.due(agents, 10);
        return { due, nextAt };
      },
      { due: [], nextAt: null },
    ),
  ],
  'schedules.unfired': [finds((journal) => journal.schedules.unfired([], 0, 10), [])],
  'schedules.move': [
    finds((journal) => journal.schedules.move({ tenant: theirs, id: 'daily', mark: '1:0', nextAt: 1 }), false),
  ],
  'schedules.delete': [finds((journal) => journal.schedules.delete(theirs, 'daily'), false)],
  'snapshots.newest': [refused((journal) => journal.snapshots.newest(RUN, 1), 'run_not_found')],
  'snapshots.keep': [
    refused(
      (journal) =>
        journal.snapshots.keep({ ...lease, version: 1, head: 9, body: Uint8Array.of(9), from: 0, blocks: [] }),
      'run_not_found',
    ),
  ],
  'snapshots.forget': [refused((journal) => journal.snapshots.forget(RUN), 'run_not_found')],
  'store.write': [
    refused(
      (journal) => journal.store.write([{ namespace: [theirs, 'ana', 'notes'], key: 'two', value: 1 }]),
      'scope_mismatch',
    ),
    refused(
      (journal) => journal.store.write([{ namespace: [theirs, 'ana', 'notes'], key: 'one', value: 1 }]),
      'scope_mismatch',
    ),
    refused(
      (journal) => journal.store.write([{ namespace: ['pilotage:rules', theirs, 'ana'], key: 'r', value: 1 }]),
      'scope_mismatch',
    ),
    refused((journal) => journal.store.write([{ namespace: ['common'], key: 'two', value: 1 }]), 'scope_mismatch'),
    // What is not there for it is not deleted either.
    finds((journal) => journal.store.write([{ namespace: [theirs, 'ana', 'notes'], key: 'one' }]), undefined),
  ],
  'store.writeIf': [
    refused((journal) => {
      const place = { namespace: [theirs, 'ana', 'notes'], key: 'two' };
      return journal.store.writeIf(place, [{ ...place, value: 1 }]);
    }, 'scope_mismatch'),
    // What is there for others is not seen, neither as it is nor as missing.
    finds((journal) => {
      const place = { namespace: [theirs, 'ana', 'notes'], key: 'one' };
      return journal.store.writeIf({ ...place, value: 1 }, [{ ...place, value: 2 }]);
    }, false),
  ],
  'store.get': [
    finds((journal) => journal.store.get([theirs, 'ana', 'notes'], 'one'), undefined),
    finds((journal) => journal.store.get(['pilotage:rules', theirs, 'ana'], 'rule'), undefined),
  ],
  'store.list': [
    finds((journal) => journal.store.list({ namespace: [], limit: 10 }), []),
    finds((journal) => journal.store.list({ namespace: ['pilotage:rules'], limit: 10 }), []),
  ],
  'store.search': [finds((journal) => journal.store.search({ namespace: [], limit: 10 }, { words: ['blue'] }), [])],
  'store.unindexed': [finds((journal) => journal.store.unindexed([theirs], 'words', 10), [])],
  'store.watch': [finds((journal) => journal.store.watch('pilotage:x', () => {})(), undefined)],
  'store.setVectors': [
    finds(
      (journal) =>
        journal.store.setVectors(
          'words',
          [1, 2, 3, 4].map((revision) => ({ revision, vector: Float32Array.of(1) })),
        ),
      undefined,
    ),
  ],
  'waits.list': [
    finds((journal) => journal.waits.list({}), []),
    finds((journal) => journal.waits.list({ run: RUN }), []),
  ],
  'events.signal': [
    refused(
      (journal) => journal.events.signal({ tenant: theirs, key: 'paid', id: 's9', payload: {}, keepMs: HOUR }),
      'scope_mismatch',
    ),
  ],
  'events.list': [finds((journal) => journal.events.list({ tenant: theirs }), [])],
  'streams.append': [
    refused(
      (journal) =>
        journal.streams.append({ ...lease, step: 1, call: 0, attempt: 1, rows: [{ name: 'log', value: 'b' }] }),
      'run_not_found',
    ),
  ],
  'streams.read': [refused((journal) => journal.streams.read(RUN, 'log', 1, 10), 'run_not_found')],
  'streams.list': [refused((journal) => journal.streams.list(RUN), 'run_not_found')],
  'passing.want': [finds((journal) => journal.passing.want([RUN], 10 * HOUR), undefined)],
  'passing.wanted': [finds((journal) => journal.passing.wanted(), [])],
  'passing.put': [finds((journal) => journal.passing.put([{ ...lease, clears: true, value: 'b' }]), undefined)],
  'passing.watch': [finds((journal) => journal.passing.watch(RUN, () => {})(), undefined)],
  'passing.watchWanted': [finds((journal) => journal.passing.watchWanted(() => {})(), undefined)],
  'passing.read': [finds((journal) => journal.passing.read(RUN, 0), [])],
};

let referenceOf: (tenant: string) => Promise<string>;

/** The names of all methods, those of the parts behind the name of the part. */
function methodsOf(journal: Journal): string[] {
  const names = new Set<string>();
  for (const name of namesIn(journal)) {
    const member: unknown = Reflect.get(journal, name);
    if (typeof member === 'function') names.add(name);
    else if (typeof member === 'object' && member !== null) {
      for (const part of namesIn(member))
        if (typeof Reflect.get(member, part) === 'function') names.add(`${name}.${part}`);
    }
  }
  return [...names].filter((name) => name !== 'close').sort();
}

function namesIn(object: object): string[] {
  const own = Object.getOwnPropertyNames(object);
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(object));
  const inherited = Object.getPrototypeOf(object) === Object.prototype ? [] : methods;
  return [...own, ...inherited].filter((name) => name !== 'constructor');
}

describe('a journal of one tenant', async () => {
  const admin = await postgresUrl();
  let place: Separated;
  let journal: Journal;

  const everything = async () => {
    const tables = await tablesOf(place);
    return Object.fromEntries(
      await Promise.all(tables.map(async (table) => [table, await contentOf(place, table)] as const)),
    );
  };

  beforeAll(async () => {
    place = await separated(admin);
    const worker = place.open();
    await furnish(worker, theirs);
    referenceOf = async (tenant) => (await worker.artifacts.list({ ...scope, tenant }, 1)).rows[0]?.artifactRef ?? '';
    journal = place.open(ours);
  });
  afterAll(() => place.close());

  it('has an attempt for every method of the port', () => {
    expect(Object.keys(ATTEMPTS).sort()).toEqual(methodsOf(journal));
  });

  for (const [method, attempts] of Object.entries(ATTEMPTS)) {
    it(`${method} finds and changes nothing that is another's`, async () => {
      const before = await everything();
      for (const { does, gives, refused: code } of attempts) {
        const done = (async () => does(journal))();
        if (code === undefined) expect(await done).toEqual(gives);
        else await expectCode(done, code);
      }
      expect(await everything()).toEqual(before);
    });
  }

  it('does all of it with what is its own, beside the other', async () => {
    await furnish(journal, ours);
    const runs = [`${ours}-due`, `${ours}-keyed`, `${ours}-parked`, `${ours}-run`];
    expect((await journal.list({})).map(({ identity: { run } }) => run).sort()).toEqual(runs);
    expect((await journal.read(`${ours}-run`)).length).toBe(2);
    expect((await journal.store.list({ namespace: [], limit: 10 })).map(({ namespace }) => namespace[0])).toEqual([
      ours,
    ]);
    expect((await journal.store.list({ namespace: ['pilotage:rules', ours], limit: 10 })).length).toBe(1);
    expect((await claimFirst(journal, { ...ana, agents: ['finish'] }))?.run).toBe(`${ours}-due`);
    const aside = startedEntry(own, { conversation: false });
    const claim = await journal.create(newRun(own.run, { identity: own, entries: [aside], claim: ana }));
    // What a run tells another one's tenant is told to nobody.
    await journal.append(step(claim ?? lease, 1, { tells: [{ run: RUN, message: control('from us') }] }));
    const worker = place.open();
    expect((await worker.inbox(RUN)).map(({ message }) => message.id)).toEqual(['m1']);
    expect((await worker.list({})).length).toBe(9);
  });
});

describe('SQL over the connection of one tenant', async () => {
  const admin = await postgresUrl();
  let place: Separated;
  let client: pg.Client;

  beforeAll(async () => {
    place = await separated(admin);
    const worker = place.open();
    await furnish(worker, theirs);
    await furnish(worker, ours);
    client = new pg.Client({ connectionString: place.url });
    await client.connect();
    await client.query(`SET search_path = ${place.schema}; SET pilotage.tenant = '${ours}'`);
  });
  afterAll(async () => {
    await client.end();
    await place.close();
  });

  it('finds in each table what is its own, and nothing else', async () => {
    for (const table of await tablesOf(place)) {
      const all = await contentOf(place, table);
      const { rows } = await client.query<{ row: string }>(`SELECT to_jsonb(each)::text AS row FROM ${table} AS each`);
      expect(rows.length, table).toBe(all.length / 2);
      expect(rows.length, table).toBeGreaterThan(0);
      await client.query(`SET pilotage.tenant = 'nobody'`);
      expect((await client.query(`SELECT * FROM ${table}`)).rows, table).toEqual([]);
      await client.query(`SET pilotage.tenant = '${ours}'`);
    }
  });

  it('changes, deletes and locks nothing of another tenant', async () => {
    for (const table of await tablesOf(place)) {
      const before = await contentOf(place, table);
      const { rows } = await client.query<{ name: string }>(
        `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 AND is_identity = 'NO' ORDER BY 1`,
        [place.schema, table],
      );
      const column = `"${rows[0]?.name}"`;
      await client.query(`SET pilotage.tenant = 'nobody'`);
      expect((await client.query(`UPDATE ${table} SET ${column} = ${column}`)).rowCount, table).toBe(0);
      expect((await client.query(`SELECT FROM ${table} FOR UPDATE`)).rowCount, table).toBe(0);
      expect((await client.query(`DELETE FROM ${table}`)).rowCount, table).toBe(0);
      await client.query(`SET pilotage.tenant = '${ours}'`);
      expect(await contentOf(place, table), table).toEqual(before);
    }
  });

  it('puts no row in that is of another tenant, nor makes one of its own such a row', async () => {
    for (const table of await tablesOf(place)) {
      const before = await contentOf(place, table);
      // A row of theirs as it is, and as it might look beside it.
      const foreign = before.filter((row) => !row.includes(ours));
      for (const row of foreign.length === 0 ? before : foreign) {
        const put = `INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(NULL::${table}, $1)).*`;
        await client.query(`SET pilotage.tenant = 'nobody'`);
        await expect(client.query(put, [row]), table).rejects.toMatchObject({ code: '42501' });
        await client.query(`SET pilotage.tenant = '${ours}'`);
      }
      expect(await contentOf(place, table), table).toEqual(before);
    }
    for (const table of ['runs', 'schedules', 'signals', 'session_facts', 'open_waits', 'start_keys']) {
      const given = client.query(`UPDATE ${table} SET tenant = '${theirs}'`);
      await expect(given, table).rejects.toMatchObject({ code: '42501' });
    }
    const run = `(SELECT key FROM runs WHERE id = '${ours}-run')`;
    for (const table of [
      'entries',
      'controls',
      'snapshots',
      'snapshot_blocks',
      'run_labels',
      'streams',
      'readers',
      'passing',
      'open_waits',
    ]) {
      const given = client.query(`UPDATE ${table} SET run = (SELECT 1) WHERE run = ${run}`);
      await expect(given, table).rejects.toMatchObject({ code: '42501' });
    }
  });

  it('is refused when it does not say whose rows it wants', async () => {
    const mute = new pg.Client({ connectionString: place.url });
    await mute.connect();
    await mute.query(`SET search_path = ${place.schema}`);
    for (const table of await tablesOf(place)) {
      await expect(mute.query(`SELECT * FROM ${table}`), table).rejects.toThrow('does not say whose it wants');
      await mute.query(`SET pilotage.all_tenants = 'off'; SET pilotage.tenant = ''`);
      await expect(mute.query(`DELETE FROM ${table}`), table).rejects.toThrow('does not say whose it wants');
    }
    await mute.end();
  });
});
