/** Statements with which a process takes a run, keeps it, and lets go of it. Most are one round trip. */
import { type Clock, steadyMs } from '#core';
import { LeaseWatch, MAX_LEASE_MS } from '../lease-watch.ts';
import type { Claim, Claimant, ClaimedRun, ClaimRequest, DueRequest, Park, ParkedRequest, Renewal } from '../port.ts';
import { assertMayGoOn, dueAt, hasEnded, mayLive, mayReopen, wholeMs } from '../rules.ts';
import { isYetToBegin } from '../start-rules.ts';
import { decodeRow } from '../stored-runs.ts';
import {
  CLAIM_DUE,
  CLAIM_DUE_OF,
  CLAIM_DUE_OF_OTHERS,
  CLAIM_FREE,
  CLAIM_KEY,
  CLAIM_NAMED,
  CLAIM_PARKED,
  CLAIM_PARKED_OF_OTHERS,
  NEXT_DUE,
} from './claim-statements.ts';
import { type Database, NOW_1, type Sql, sessionLock, TIME_1, type Times } from './database.ts';
import { findRun, HAS_ENDED, holdRuns, IS_LEASED, RUN_COLUMNS, type RunRow } from './run-rows.ts';
import type { PostgresTurns } from './turns.ts';

/** What a claim found, and what it came to. */
interface GrantedRow extends RunRow {
  /** By the store's clock, with its fraction. */
  readonly time: number;
}

interface DueRow extends GrantedRow {
  readonly priority: number;
  /** The texts of all entries, a line each. `null`: they are many. */
  readonly bodies: string | null;
}

/** What a claim that leaves tenants out says beside: the tenant up to which it has looked, where it has not looked at all. */
interface Looked {
  readonly looked_to: string | null;
}

/** Nothing was found where the run is not there. */
type OthersRow = Looked & (DueRow | { readonly key: null });

function isFound(row: OthersRow): row is Looked & DueRow {
  return row.key !== null;
}

const WORK_IS_DONE = `
  UPDATE {runs} SET work_left_at = $3::bigint WHERE key = $1::bigint AND fence = $2::bigint`;
const FAR = `
  SELECT key, fence, lease_until FROM {runs} WHERE ${IS_LEASED} AND lease_until > ${NOW_1} + ${MAX_LEASE_MS}`;
const OF_KEY = `SELECT ${RUN_COLUMNS} FROM {runs} WHERE key = $1::bigint FOR UPDATE`;
/** In the order of their keys, as all do who hold several runs. */
const RENEW = `
  WITH held AS MATERIALIZED (
    SELECT key, id, fence, owner FROM {runs} WHERE id = ANY($3::text[]) ORDER BY key FOR UPDATE
  ),
  fit AS MATERIALIZED (
    SELECT held.key FROM held JOIN unnest($3::text[], $4::bigint[]) AS lease (run, fence) ON lease.run = held.id
    WHERE held.fence = lease.fence AND held.owner IS NOT NULL
  )
  UPDATE {runs} AS runs SET lease_until = ceil(${TIME_1} + $2::float8)::bigint
  FROM fit WHERE runs.key = fit.key
  RETURNING runs.id, runs.fence, runs.signals`;
const RELEASE = `
  UPDATE {runs} SET owner = NULL, lease_until = NULL, problem = $6,
    wake_at = CASE WHEN signals > $4::bigint THEN 0 WHEN $5::boolean THEN least(ceil(${TIME_1} + $7::float8), 8640000000000000)::bigint ELSE $8::bigint END,
    status = CASE WHEN ${HAS_ENDED} THEN status WHEN waits > 0 THEN 'pending' WHEN signals > $4::bigint THEN status ELSE coalesce($9, status) END,
    work_left_at = CASE WHEN $10::boolean THEN ceil(${TIME_1})::bigint ELSE work_left_at END
  WHERE id = $2 AND fence = $3::bigint AND owner IS NOT NULL
  RETURNING signals, status`;

const NOBODY_SERVED = { ready: '', come: '' };
/** Leases that end later than any lease can are looked for now and then. */
const FAR_LOOK_MS = 30_000;

export class PostgresClaims {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #turns: PostgresTurns;
  /** Is told of each run that is claimed. */
  readonly #note: (row: RunRow) => void;
  readonly #leaseWatch: LeaseWatch<number>;
  /** The tenants that were served last, when some were left out, of what was ready and of what had a time. */
  readonly #last = { due: NOBODY_SERVED, parked: NOBODY_SERVED };
  /** By the steady clock. */
  #lookedFarAt = Number.NEGATIVE_INFINITY;

  constructor(database: Database, clock: Clock, turns: PostgresTurns, note: (row: RunRow) => void) {
    this.#database = database;
    this.#clock = clock;
    this.#turns = turns;
    this.#note = note;
    this.#leaseWatch = new LeaseWatch(clock);
  }

  async claimDue(request: DueRequest): Promise<ClaimedRun[]> {
    const { owner, leaseMs, agents, exceptTenants = [], exceptRuns = [], limit } = request;
    const asked = [owner, leaseMs, agents ?? null, exceptTenants, exceptRuns, limit] as const;
    const due = <Row = DueRow>(text: string, ...more: string[]): Promise<Row[]> =>
      this.#database.read((sql) => sql.rows<Row>(text, this.#database.given, ...asked, ...more));
    const isOfOthers = agents !== undefined && exceptTenants.length > 0;
    const rows = isOfOthers
      ? await this.#ofOthers('due', (...after) => due<OthersRow>(CLAIM_DUE_OF_OTHERS(agents), ...after))
      : await due(agents === undefined ? CLAIM_DUE : CLAIM_DUE_OF(agents));
    if (rows.length === 0) return this.#claimStuck(request);
    const first = rows.toSorted((left, right) => right.priority - left.priority || left.key - right.key);
    return Promise.all(first.map((row) => this.#grantedAlong(row, request)));
  }

  /** Tenants are served one after another. */
  async #ofOthers(
    which: 'due' | 'parked',
    claim: (ready: string, come: string) => Promise<OthersRow[]>,
  ): Promise<DueRow[]> {
    const { ready, come } = this.#last[which];
    let rows = await claim(ready, come);
    const isOver = rows.every(({ key, looked_to: lookedTo }) => key === null && lookedTo === null);
    if (isOver && ready + come !== '') rows = await claim('', '');
    const found = rows.filter(isFound);
    const isReady = ({ wake_at: at }: DueRow): boolean => at === 0;
    const last = lastOf(found.filter((row) => !isReady(row)));
    this.#last[which] = { ready: lastOf(found.filter(isReady)), come: last || (rows[0]?.looked_to ?? '') };
    return found;
  }

  async claim(request: ClaimRequest): Promise<Claim | undefined> {
    const { owner, leaseMs, run } = request;
    const { given } = this.#database;
    const row = await this.#database.read((sql) => sql.row<GrantedRow>(CLAIM_FREE, given, owner, leaseMs, run));
    return row === undefined ? this.#claimHeld(request) : this.#granted(row, request);
  }

  /** Perhaps its lease is over, or it has ended and is to be reopened. */
  async #claimHeld(request: ClaimRequest): Promise<Claim | undefined> {
    const { run } = request;
    const seen = await this.#database.read((sql) => findRun(sql, run));
    if (seen === undefined) return undefined;
    const locks = request.reopens === undefined ? [] : [sessionLock(seen)];
    const granted = await this.#database.write(locks, async (sql, times) => {
      const row = (await holdRuns(sql, [run])).get(run);
      // It was deleted in between.
      if (row === undefined) return undefined;
      return (await this.#isClaimable(sql, row, request, times)) ? this.#grant(sql, row, request) : undefined;
    });
    return granted && this.#granted(granted, request);
  }

  async #isClaimable(sql: Sql, row: RunRow, request: ClaimRequest, { now, time }: Times): Promise<boolean> {
    if (isYetToBegin({ ...row, wakeAt: row.wake_at }, now)) return false;
    if (hasEnded(row.status)) {
      if (!mayReopen(row.status, request)) return false;
      assertMayGoOn(row.id, await this.#turns.otherInTurn(sql, row.id));
      return true;
    }
    const { lease_until: until } = row;
    if (until === null || until <= now || row.owner === request.from) return true;
    return this.#leaseWatch.isOver(row.key, { ...row, until }, time);
  }

  #grant(sql: Sql, { key }: RunRow, { owner, leaseMs }: Claimant): Promise<GrantedRow | undefined> {
    return sql.row<GrantedRow>(CLAIM_KEY, this.#database.given, owner, leaseMs, key);
  }

  /** A run under a lease that was written with a clock far ahead, and that nobody has renewed. */
  async #claimStuck(request: DueRequest): Promise<ClaimedRun[]> {
    const steadyNow = steadyMs(this.#clock);
    if (steadyNow - this.#lookedFarAt >= FAR_LOOK_MS) {
      this.#lookedFarAt = steadyNow;
      const { given } = this.#database;
      const found = await this.#database.read((sql) =>
        sql.rows<Pick<RunRow, 'key' | 'fence'> & { lease_until: number }>(FAR, given),
      );
      // By definition it is later than any lease by the time of the statement.
      for (const { key, fence, lease_until: until } of found) this.#leaseWatch.isOver(key, { fence, until }, 0);
    }
    const { ripe } = this.#leaseWatch;
    if (ripe.length === 0) return [];
    const granted = await this.#database.write([], async (sql, { time }) => {
      for (const key of ripe) {
        const row = await sql.row<RunRow>(OF_KEY, key);
        if (row !== undefined && this.#isStuck(row, request, time)) return this.#grant(sql, row, request);
      }
      return undefined;
    });
    return granted === undefined ? [] : [await this.#grantedAlong({ ...granted, bodies: null }, request)];
  }

  #isStuck(row: RunRow, request: DueRequest, time: number): boolean {
    const { agents, exceptTenants = [], exceptRuns = [] } = request;
    if (row.lease_until === null || hasEnded(row.status)) {
      this.#leaseWatch.forget(row.key);
      return false;
    }
    const isWanted = agents?.includes(row.agent) !== false && !exceptTenants.includes(row.tenant);
    if (!isWanted || exceptRuns.includes(row.id)) return false;
    return this.#leaseWatch.isOver(row.key, { fence: row.fence, until: row.lease_until }, time);
  }

  async claimParked(request: ParkedRequest): Promise<ClaimedRun[]> {
    const { owner, leaseMs, agents, exceptTenants = [], exceptRuns = [], runs, limit } = request;
    const { given } = this.#database;
    const asked = [given, owner, leaseMs, agents, exceptTenants, exceptRuns, limit] as const;
    const parked = <Row = DueRow>(text: string, ...more: (string | readonly string[])[]): Promise<Row[]> =>
      this.#database.read((sql) => sql.rows<Row>(text, ...asked, ...more));
    const ofAny = (): Promise<DueRow[]> =>
      exceptTenants.length === 0
        ? parked(CLAIM_PARKED(agents))
        : this.#ofOthers('parked', (_, come) => parked<OthersRow>(CLAIM_PARKED_OF_OTHERS(agents), come));
    const rows = await (runs === undefined ? ofAny() : parked(CLAIM_NAMED, runs));
    const first = rows.toSorted((left, right) => (left.wake_at ?? 0) - (right.wake_at ?? 0));
    return Promise.all(first.map((row) => this.#grantedAlong(row, request)));
  }

  async #grantedAlong(
    row: GrantedRow & Pick<DueRow, 'bodies'>,
    request: DueRequest | ParkedRequest,
  ): Promise<ClaimedRun> {
    return { claim: await this.#granted(row, request), tenant: row.tenant, ...entriesOf(row) };
  }

  /** The owner before may be known to be dead. */
  async #granted(row: GrantedRow, request: Claimant): Promise<Claim> {
    this.#leaseWatch.forget(row.key);
    this.#note(row);
    if (row.owner === null) return claimOf(row, row.work_left_at);
    if (mayLive(row.owner, request)) return claimOf(row, Math.ceil(row.time));
    await this.#database.read((sql) => sql.run(WORK_IS_DONE, row.key, row.fence + 1, row.work_left_at));
    return claimOf(row, row.work_left_at);
  }

  async nextDue(agents: readonly string[]): Promise<number | undefined> {
    const { given } = this.#database;
    const found = await this.#database.read((sql) =>
      sql.row<{ in_ms: number | null }>(NEXT_DUE(agents), given, agents),
    );
    return found?.in_ms ?? undefined;
  }

  async renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]> {
    if (leases.length === 0) return [];
    const { given } = this.#database;
    const asked = [leaseMs, leases.map(({ run }) => run), leases.map(({ fence }) => fence)] as const;
    const rows = await this.#database.read((sql) =>
      sql.rows<Pick<RunRow, 'id' | 'fence' | 'signals'>>(RENEW, given, ...asked),
    );
    const held = new Map(rows.map((row) => [`${row.fence}:${row.id}`, row.signals]));
    return leases.map(({ run, fence }) => held.get(`${fence}:${run}`));
  }

  async release({ run, fence }: Renewal, park: Park): Promise<boolean> {
    const { seenSignals, problem, leavesWork = false, asBefore, wakeInMs = 0 } = park;
    // Refused before it is tried.
    const at = dueAt(park, 0);
    const isRelative = asBefore === undefined && wakeInMs !== null && wakeInMs > 0;
    const status = asBefore?.status ?? park.status ?? null;
    const { given } = this.#database;
    const values = [seenSignals, isRelative, problem === undefined ? null : JSON.stringify(problem)] as const;
    const row = await this.#database.read((sql) =>
      sql.row<Pick<RunRow, 'signals' | 'status'>>(
        RELEASE,
        given,
        run,
        fence,
        ...values,
        wakeInMs ?? 0,
        at,
        status,
        leavesWork,
      ),
    );
    // A lost lease releases nothing.
    return row === undefined || row.signals <= seenSignals || hasEnded(row.status);
  }

  /** In the transaction that has stored the run. */
  async grantNew(sql: Sql, key: number, lease: { readonly owner: string; readonly leaseMs: number }): Promise<Claim> {
    wholeMs(lease.leaseMs, 'leaseMs');
    const row = await sql.row<GrantedRow>(CLAIM_KEY, this.#database.given, lease.owner, lease.leaseMs, key);
    return claimOf(row as GrantedRow, null);
  }
}

function lastOf(rows: readonly DueRow[]): string {
  return rows.reduce((most, { tenant }) => (tenant > most ? tenant : most), '');
}

function claimOf(row: GrantedRow, workLeftAt: number | null): Claim {
  const { id: run, head, signals, status, wake_at: wakeAt, time } = row;
  const startsAt = row.starts_at ?? 0;
  return {
    ...{ run, fence: row.fence + 1, head, signals, before: { status, wakeAt } },
    ...((row.waits ?? 0) > 0 ? { waits: true } : {}),
    ...(startsAt > time ? { startsInMs: startsAt - time } : {}),
    ...(workLeftAt === null ? {} : { workLeftMsAgo: Math.max(0, time - workLeftAt) }),
  };
}

/** What cannot be read is told to whoever reads it. */
function entriesOf({ id, head, bodies }: RunRow & Pick<DueRow, 'bodies'>): Pick<ClaimedRun, 'entries'> {
  const texts = bodies?.split('\n') ?? [];
  if (texts.length !== head) return {};
  try {
    return { entries: texts.map((body, index) => decodeRow(id, { seq: index + 1, body })) };
  } catch {
    return {};
  }
}
