/**
 * The statements on runs, entries and what was said to runs. Everything here is synchronous. What writes is called inside the writer's
 * transaction, and throws a `PilotageError` only before its first change.
 */
import type { DatabaseSync } from 'node:sqlite';
import { type Clock, type Entry, encodeEntry, PilotageError, type StartKey, steadyMs } from '#core';
import {
  type AppendText,
  encodeRun,
  type MessageText,
  type RunText,
  type SendingText,
  type ToldText,
} from '../encoded.ts';
import { LeaseWatch, MAX_LEASE_MS } from '../lease-watch.ts';
import type {
  Append,
  Claim,
  Claimant,
  ClaimedRun,
  ClaimRequest,
  DueRequest,
  NewRun,
  Park,
  ParkedRequest,
  Received,
  Renewal,
  RunStatus,
  Sent,
  SignalOptions,
  StartedByKey,
} from '../port.ts';
import {
  assertCurrent,
  assertInTime,
  assertMayGoOn,
  assertOwnStarts,
  assertRoom,
  assertSeen,
  assertSessionSeen,
  assertTakesSignals,
  assertTreeLimit,
  dueAt,
  hasEnded,
  isReopening,
  isTurn,
  mayLive,
  mayReopen,
  type Owned,
  runNotFound,
  type StoredTree,
  sourceOf,
  wholeMs,
} from '../rules.ts';
import { beginningAt, decideStart, firstWake, inPlaceOf, isYetToBegin, type KeyedRuns } from '../start-rules.ts';
import { decodeRow, type EntryRow } from '../stored-runs.ts';
import { SqliteDue } from './due.ts';
import { SqliteInbox } from './inbox.ts';
import { ItemWriter } from './items.ts';
import { SqlitePassedOver } from './passed-over.ts';
import type { SqliteSchedules } from './schedules.ts';
import { HEAD, idAt, LAST_ENTRY } from './schema.ts';
import type { SqliteStarts } from './starts.ts';
import { type PreparedStatement, prepared } from './statements.ts';
import { NO_TURN, type SqliteTurns } from './turns.ts';
import { SqliteWaits } from './waits.ts';

interface RunRow {
  readonly key: number;
  readonly id: string;
  readonly status: RunStatus;
  readonly head: number;
  readonly signals: number;
  readonly fence: number;
  readonly wake_at: number | null;
  readonly owner: string | null;
  readonly lease_until: number | null;
  readonly work_left_at: number | null;
  readonly agent: string;
  readonly tenant: string;
  readonly waits: number | null;
  readonly starts_at: number | null;
}

const RUN_ROW = `
  SELECT key, id, status, agent, tenant, ${HEAD} AS head, signals, fence, wake_at, owner, lease_until, work_left_at, waits,
    starts_at FROM`;
const FIND_RUN = `${RUN_ROW} runs WHERE `;
/** Leases that end later than any lease can by the own clock are looked for now and then. */
const FAR_LOOK_MS = 30_000;
type Statements = ReturnType<typeof statementsOn>;

function statementsOn(db: DatabaseSync) {
  const sql = prepared(db);
  return {
    findRun: sql(`${FIND_RUN} id = ?`),
    findRunByKey: sql(`${FIND_RUN} key = ?`),
    identityOf: sql('SELECT tenant, user, session, id AS run FROM runs WHERE key = ?'),
    findOwned: sql('SELECT tenant, user, session, parent FROM runs WHERE id = ?'),
    liveUnder: sql(
      `SELECT count(*) AS live FROM runs WHERE root = ? AND status NOT IN ('finished', 'failed', 'cancelled')`,
    ),
    insertRun: sql(`
      INSERT INTO runs (id, tenant, user, session, agent, parent, root, priority, status, created_at, updated_at,
        turn, waits, head, fence, owner, lease_until)
      VALUES (:id, :tenant, :user, :session, :agent, :parent, :root, :priority, :status, :now, :now,
        :turn, :waits, :head, :fence, :owner, :until)
      ON CONFLICT (id) DO NOTHING`),
    // The hot path: compares and inserts in one statement, writes one page, and hands no row to JavaScript.
    insertEntry: sql(`
      INSERT INTO entries (id, at, body)
      SELECT ${idAt('key', '?2')} + 1, ?5, ?6 FROM runs
      WHERE id = ?1 AND fence = ?3 AND signals <= ?4 AND head <= ?2 AND coalesce(${LAST_ENTRY}, key << 32) = ${idAt('key', '?2')}`),
    insertNext: sql(`INSERT INTO entries (id, at, body) VALUES (${idAt('?1', '?2')}, ?3, ?4)`),
    readEntries: sql(`
      SELECT seq, body FROM entries WHERE id >= ${idAt('?1', '?2')} AND id < ${idAt('?1', '?3')} ORDER BY id`),
    setAgent: sql('UPDATE runs SET agent = ? WHERE key = ?'),
    setStatus: sql('UPDATE runs SET status = ?2, head = ?3, updated_at = ?4 WHERE key = ?1 AND status <> ?2'),
    // A claimed run is due again when its lease is over, until a release parks it.
    grant: sql(`
      UPDATE runs SET owner = ?, lease_until = ?, work_left_at = ?, fence = fence + 1, wake_at = 0, problem = NULL,
        head = ?, status = CASE WHEN status IN ('pending', 'waiting') THEN 'running' ELSE status END
      WHERE key = ?`),
    renew: sql('UPDATE runs SET lease_until = ? WHERE key = ?'),
    release: sql(`
      UPDATE runs SET owner = NULL, lease_until = NULL, wake_at = ?, status = coalesce(?, status), head = ?,
        work_left_at = coalesce(?, work_left_at), problem = ?
      WHERE key = ?`),
    addSignal: sql(`
      UPDATE runs SET signals = signals + 1, wake_at = 0, updated_at = ?, priority = coalesce(?, priority) WHERE key = ?`),
  } satisfies Record<string, PreparedStatement>;
}

/** Who else has to look after an append. */
export interface Appended {
  /** The turn whose turn it is, when these entries end the one before it. */
  readonly next?: string | undefined;
  /** Runs that have got a signal. */
  readonly told?: readonly string[];
}

function isParked({ owner, status, wake_at: at, waits }: RunRow): boolean {
  return owner === null && (status === 'waiting' || status === 'paused') && at !== null && (waits ?? 0) === 0;
}

/** A run that was claimed, and the key of its row. */
export type ClaimedRow = Pick<ClaimedRun, 'claim' | 'tenant'> & { readonly key: number };

const NOBODY: Appended = Object.freeze({});
/** The id of an entry has the key of its run above its seq. */
const SEQS = 2 ** 32;

/** A run that nobody has. */
const UNHELD = { status: 'pending', head: 0, fence: 0, owner: null, until: null } as const;

/** A run that is claimed as it is stored. */
function heldFrom({ owner, leaseMs }: Claimant, head: number, time: number) {
  return { status: 'running', head, fence: 1, owner, until: wholeMs(time + leaseMs, 'leaseMs') } as const;
}

/** The statements on what goes with runs. */
interface Beside {
  readonly turns: SqliteTurns;
  readonly starts: SqliteStarts;
  readonly schedules: SqliteSchedules;
}

export class SqliteRows {
  readonly waits: SqliteWaits;
  readonly #sql: Statements;
  readonly #inbox: SqliteInbox;
  readonly #turns: SqliteTurns;
  readonly #starts: SqliteStarts;
  readonly #schedules: SqliteSchedules;
  readonly #items: ItemWriter;
  readonly #due: SqliteDue;
  readonly #passedOver: SqlitePassedOver;
  readonly #clock: Clock;
  readonly #leaseWatch: LeaseWatch<number>;
  /** By the steady clock. */
  #lookedFarAt = Number.NEGATIVE_INFINITY;

  constructor(db: DatabaseSync, clock: Clock, beside: Beside) {
    this.#clock = clock;
    this.#turns = beside.turns;
    this.#starts = beside.starts;
    this.#schedules = beside.schedules;
    this.#leaseWatch = new LeaseWatch(clock);
    this.#passedOver = new SqlitePassedOver(db);
    this.#sql = statementsOn(db);
    this.#inbox = new SqliteInbox(db);
    this.#items = new ItemWriter(db);
    this.#due = new SqliteDue(db);
    this.waits = new SqliteWaits(db, (key, message, now) => this.#tellKey(key, message, now));
  }

  create({ run, first, bodies }: RunText, time: number): Claim | undefined {
    const now = Math.floor(time);
    const { run: id, tenant, user, session } = run.identity;
    const { parent = null, root = null } = first.task ?? {};
    // It may be refused, before anything is changed.
    const source = sourceOf(first);
    if (source !== undefined && this.#sql.findRun().get(id) === undefined) this.#find(source);
    if (run.fires !== undefined) this.#schedules.moveOn(run.fires, now);
    const place = isTurn(first) ? this.#turns.placeFor(run.identity, run.waits) : NO_TURN;
    const wakeAt = firstWake(first, time);
    const lease = place.isBehind || wakeAt > 0 ? undefined : run.claim;
    // In one statement: each further one would change the indexes of the row again.
    const row = { id, tenant, user, session, agent: first.agent, parent, root, priority: run.priority, now };
    const { turn, waits } = place;
    const held = lease === undefined ? UNHELD : heldFrom(lease, bodies.length, time);
    const inserted = this.#sql.insertRun().run({ ...row, turn, waits, ...held });
    if (inserted.changes === 0) return undefined;
    const key = Number(inserted.lastInsertRowid);
    for (const [index, body] of bodies.entries()) this.#sql.insertNext().run(key, index + 1, now, body);
    if (place.makesRoom) this.#turns.makeRoom(run.identity, place.turn);
    if (run.openWaits !== undefined) this.waits.replace(key, run.openWaits, now);
    this.#starts.began(key, first, wakeAt);
    const before = { status: 'pending', wakeAt: 0 } as const;
    return lease && { run: id, fence: held.fence, head: held.head, signals: 0, before };
  }

  startByKey({ run: given }: RunText, key: StartKey, time: number): StartedByKey {
    const now = Math.floor(time);
    const { tenant, run: id } = given.identity;
    if (this.#sql.findRun().get(id) !== undefined) return { run: id };
    // Nobody begins before the time that was asked for, which may have a fraction.
    const decision = decideStart(key, this.#starts.rows(tenant, key), this.#keyedRuns(time), Math.ceil(time));
    if (decision.do === 'join') return { run: decision.run };
    if (decision.do === 'replace') {
      this.#replace(this.#find(decision.run).key, given, decision.startsAt, time);
      return { run: decision.run };
    }
    const claim = this.create(encodeRun(beginningAt(given, decision.startsAt)), time);
    this.#starts.add({ tenant, run: id, number: this.#find(id).key }, key, decision, now);
    return { run: id, ...(claim === undefined ? {} : { claim }) };
  }

  #keyedRuns(now: number): KeyedRuns {
    const has = (run: string, test: (row: RunRow) => boolean): boolean => {
      const row = this.#sql.findRun().get<RunRow & Record<string, never>>(run);
      return row !== undefined && test(row);
    };
    return {
      isUnderWay: (run) => has(run, ({ status }) => !hasEnded(status)),
      isYetToBegin: (run) => has(run, (row) => isYetToBegin({ ...row, wakeAt: row.wake_at }, now)),
    };
  }

  #replace(key: number, given: NewRun, startsAt: number, time: number): void {
    const identity = this.#sql.identityOf().get(key) as unknown as NewRun['identity'];
    const { first } = inPlaceOf(given, { identity, at: this.#starts.firstAt(key) }, startsAt);
    const text = { first, body: encodeEntry(first), priority: given.priority };
    this.#starts.replace(key, text, firstWake(first, time), Math.floor(time));
  }

  append({ append, bodies, agent, starts, tells }: AppendText, time: number): Appended {
    const now = Math.floor(time);
    const { run, expected, leaseMs, takes, status, writes, waits } = append;
    if (isReopening(append)) assertMayGoOn(run, this.#turns.otherInTurn(run));
    if (starts !== undefined || leaseMs !== undefined) this.#assertMay(append);
    const key = this.#insert(append, bodies, now);
    if (leaseMs !== undefined) this.#sql.renew().run(wholeMs(time + leaseMs, 'leaseMs'), key);
    for (const id of takes ?? []) this.#inbox.take(key, id);
    // Before this run ends: the turn that comes next may be one of them.
    for (const start of starts ?? []) this.create(start, now);
    if (status !== undefined) this.#sql.setStatus().run(key, status, expected + bodies.length, now);
    if (agent !== undefined) this.#sql.setAgent().run(agent, key);
    for (const told of tells ?? []) this.#tell(told, now);
    if (writes !== undefined) this.#items.write(writes, now);
    const told = waits === undefined ? undefined : this.waits.change(key, waits, now);
    const isOver = status !== undefined && hasEnded(status);
    if (told === undefined && !isOver) return NOBODY;
    return { next: isOver ? this.#turns.ended(run) : undefined, ...(told === undefined ? {} : { told }) };
  }

  send({ sending, starts, tells }: SendingText, time: number): Sent {
    const before = this.#turns.acceptedIn(sending);
    if (before !== undefined) return { run: before };
    const standing = this.#turns.standing(sending.scope);
    assertSessionSeen(sending, standing, () => this.#turns.hasTurns(sending.scope));
    for (const { run, message } of tells) {
      if (message.isCapped) assertRoom(run, this.#inbox.waitingControls(this.#find(run).key));
    }
    if (sending.fires !== undefined) this.#schedules.moveOn(sending.fires, Math.floor(time));
    const claim = starts && this.create(starts, time);
    if (starts !== undefined && standing.branch !== undefined) this.#turns.set(sending.scope, { branch: null });
    for (const told of tells) this.#tell(told, Math.floor(time));
    return { claim };
  }

  /** What only some appends have to be asked; the insert of an entry asks the rest. */
  #assertMay(append: Append): RunRow {
    const row = this.#find(append.run);
    assertCurrent(append, row);
    assertSeen(append, row.signals);
    const tree: StoredTree = {
      find: (run) => this.#sql.findOwned().get(run) as Owned | undefined,
      live: (root) => Number(this.#sql.liveUnder().get(root)?.['live']),
    };
    assertOwnStarts(append, tree);
    assertTreeLimit(append, tree);
    return row;
  }

  /** The first entry decides, because nobody else writes meanwhile. @returns the key of the run. */
  #insert(append: Append, [first, ...others]: readonly string[], now: number): number {
    if (first === undefined) return this.#assertMay(append).key;
    const { run, fence, expected, seenSignals = Number.MAX_SAFE_INTEGER } = append;
    const { changes, lastInsertRowid } = this.#sql.insertEntry().run(run, expected, fence, seenSignals, now, first);
    if (changes === 0) throw this.#whyNot(append);
    // As a number it may have lost its last digits, which are of the seq.
    const key = Math.floor(Number(lastInsertRowid) / SEQS);
    for (const [index, body] of others.entries()) this.#sql.insertNext().run(key, expected + 2 + index, now, body);
    return key;
  }

  #whyNot(append: Append): PilotageError {
    this.#assertMay(append);
    const { run, expected } = append;
    const message = `Run ${run} has lost entries up to ${expected}. Restore the journal from a backup, or see with pilotage repair what is left.`;
    return new PilotageError('journal_corrupt', message, { data: { run } });
  }

  /** Entries with a seq from `from` up to, and without, `end`. */
  read(run: string, from: number, end: number): Entry[] {
    const { key, head } = this.#find(run);
    return this.readBy(key, { run, head }, from, end);
  }

  /** The same, of a run whose row is known. */
  readBy(key: number, { run, head }: Pick<Claim, 'run' | 'head'>, from: number, end: number): Entry[] {
    const until = Math.min(head + 1, end);
    const rows = this.#sql.readEntries().all<EntryRow>(key, from, until);
    const wanted = Math.max(0, until - from);
    // A run is stored with its first entry: one without entries would be waited for for ever.
    if (rows.length !== wanted || head < 1) {
      throw new PilotageError(
        'journal_corrupt',
        `Run ${run} has ${rows.length} of the ${wanted} entries from ${from} on. Restore the journal from a backup, or see with pilotage repair what is left.`,
        { data: { run } },
      );
    }
    return rows.map((entry) => decodeRow(run, entry));
  }

  /** The runs that `request` would get, those first that come first. @param claims it gets them. */
  findDue(request: DueRequest, now: number, claims: boolean = false): readonly number[] {
    this.passOver(request.exceptRuns);
    const due = this.#due.due(request, now, claims);
    if (due.length > 0) return due.map(({ key }) => key);
    const stuck = this.#findStuck(request, now);
    return stuck === undefined ? [] : [stuck];
  }

  /** The run, when `request` may have it. */
  findClaimable(request: ClaimRequest, now: number): number | undefined {
    const row = this.#sql.findRun().get(request.run) as RunRow | undefined;
    if (row === undefined || isYetToBegin({ ...row, wakeAt: row.wake_at }, now)) return undefined;
    if (hasEnded(row.status)) {
      if (!mayReopen(row.status, request)) return undefined;
      assertMayGoOn(row.id, this.#turns.otherInTurn(row.id));
      return row.key;
    }
    const { lease_until: until } = row;
    const free = until === null || until <= now || row.owner === request.from;
    return free || this.#leaseWatch.isOver(row.key, { ...row, until }, now) ? row.key : undefined;
  }

  /** A run under a lease that was written with a clock far ahead, and that nobody has renewed. */
  #findStuck({ agents, exceptTenants = [], exceptRuns = [] }: DueRequest, now: number): number | undefined {
    const steadyNow = steadyMs(this.#clock);
    if (steadyNow - this.#lookedFarAt >= FAR_LOOK_MS) {
      this.#lookedFarAt = steadyNow;
      const found = this.#due.leasedUntilAfter(now + MAX_LEASE_MS, agents);
      for (const { key, ...lease } of found) this.#leaseWatch.isOver(key, lease, now);
    }
    return this.#leaseWatch.ripe.find((key) => {
      const row = this.#sql.findRunByKey().get<RunRow>(key);
      if (row === undefined || row.lease_until === null || hasEnded(row.status)) {
        this.#leaseWatch.forget(key);
        return false;
      }
      const isWanted = agents?.includes(row.agent) !== false && !exceptTenants.includes(row.tenant);
      if (!isWanted || exceptRuns.includes(row.id)) return false;
      return this.#leaseWatch.isOver(key, { fence: row.fence, until: row.lease_until }, now);
    });
  }

  nextDue(agents: readonly string[], now: number): number | undefined {
    return this.#due.next(agents, now);
  }

  claim(request: ClaimRequest, now: number): Claim | undefined {
    const key = this.findClaimable(request, now);
    return key === undefined ? undefined : this.#grant(key, request, now);
  }

  claimDue(request: DueRequest, now: number): ClaimedRow[] {
    return this.findDue(request, now, true).map((key) => this.#grantAlong(this.#rowOf(key), request, now));
  }

  #rowOf(key: number): RunRow {
    return this.#sql.findRunByKey().get(key) as RunRow;
  }

  #grantAlong(row: RunRow, lease: Claimant, now: number): ClaimedRow {
    return { key: row.key, tenant: row.tenant, claim: this.#grantRow(row, lease, now) };
  }

  /** Before the transaction of a claim: the table of runs that it passes over is made with the first. */
  passOver(runs: readonly string[] = []): void {
    if (runs.length > 0) this.#passedOver.hold(runs);
  }

  claimParked(request: ParkedRequest, now: number): ClaimedRow[] {
    const { limit, runs } = request;
    if (runs === undefined) {
      this.passOver(request.exceptRuns);
      return this.#due.parked(request, now).map(({ key }) => this.#grantAlong(this.#rowOf(key), request, now));
    }
    const named = this.#namedParked(request, runs).toSorted(
      (left, right) => (left.wake_at ?? 0) - (right.wake_at ?? 0),
    );
    return named.slice(0, limit).map((row) => this.#grantAlong(row, request, now));
  }

  #namedParked({ agents, exceptTenants = [], exceptRuns = [] }: ParkedRequest, runs: readonly string[]): RunRow[] {
    const rows: RunRow[] = [];
    for (const run of runs) {
      const row = this.#sql.findRun().get<RunRow & Record<string, never>>(run);
      if (row === undefined || !isParked(row) || exceptRuns.includes(run)) continue;
      if (agents.includes(row.agent) && !exceptTenants.includes(row.tenant)) rows.push(row);
    }
    return rows;
  }

  #grant(key: number, lease: Claimant, now: number): Claim {
    return this.#grantRow(this.#rowOf(key), lease, now);
  }

  #grantRow(row: RunRow, lease: Claimant, now: number): Claim {
    const { key } = row;
    this.#leaseWatch.forget(key);
    const workLeftAt = row.owner !== null && mayLive(row.owner, lease) ? Math.ceil(now) : row.work_left_at;
    this.#sql.grant().run(lease.owner, wholeMs(now + lease.leaseMs, 'leaseMs'), workLeftAt, row.head, key);
    const before = { status: row.status, wakeAt: row.wake_at };
    const waits = (row.waits ?? 0) > 0 ? ({ waits: true } as const) : undefined;
    const startsAt = row.starts_at ?? 0;
    const early = startsAt > now ? { startsInMs: startsAt - now } : undefined;
    const { id: run, head, signals } = row;
    const claim = { run, fence: row.fence + 1, head, signals, before, ...waits, ...early };
    return workLeftAt === null ? claim : { ...claim, workLeftMsAgo: Math.max(0, now - workLeftAt) };
  }

  /** Counts the run's signals; `undefined` when the lease is not held any more. */
  renew(lease: Renewal, until: number): number | undefined {
    const row = this.#held(lease);
    if (row === undefined) return undefined;
    this.#sql.renew().run(until, row.key);
    return row.signals;
  }

  release(lease: Renewal, park: Park, now: number): boolean {
    const row = this.#held(lease);
    if (row === undefined) return true;
    const news = row.signals > park.seenSignals;
    const ended = hasEnded(row.status);
    const parked = news ? null : (park.asBefore?.status ?? park.status ?? null);
    const status = ended ? null : (row.waits ?? 0) > 0 ? 'pending' : parked;
    const problem = park.problem === undefined ? null : JSON.stringify(park.problem);
    const workLeftAt = park.leavesWork === true ? Math.ceil(now) : null;
    const wakeAt = news ? 0 : dueAt(park, now);
    this.#sql.release().run(wakeAt, status, row.head, workLeftAt, problem, row.key);
    return !news || ended;
  }

  #held(lease: Renewal): RunRow | undefined {
    const row = this.#sql.findRun().get(lease.run) as RunRow | undefined;
    return row !== undefined && row.owner !== null && row.fence === lease.fence ? row : undefined;
  }

  signal(run: string, message: MessageText, options: SignalOptions, now: number): boolean {
    const row = this.#find(run);
    if (this.#inbox.has(row.key, message.id)) return false;
    assertTakesSignals(run, row.status);
    assertInTime(options, now);
    if (message.isCapped) assertRoom(run, this.#inbox.waitingControls(row.key));
    this.#put(row, message, options.priority ?? null, now);
    return true;
  }

  #tell({ run, message }: ToldText, now: number): void {
    const row = this.#sql.findRun().get(run) as RunRow | undefined;
    if (row === undefined || hasEnded(row.status) || this.#inbox.has(row.key, message.id)) return;
    this.#put(row, message, null, now);
  }

  #tellKey(key: number, message: MessageText, now: number): string | undefined {
    const row = this.#sql.findRunByKey().get<RunRow>(key);
    if (row === undefined || hasEnded(row.status) || this.#inbox.has(key, message.id)) return undefined;
    this.#put(row, message, null, now);
    return row.id;
  }

  #put({ key, signals }: RunRow, message: MessageText, priority: number | null, now: number): void {
    this.#inbox.put(key, signals + 1, message, now);
    this.#sql.addSignal().run(now, priority, key);
  }

  inbox(run: string): Received[] {
    return this.#inbox.read(this.#find(run).key);
  }

  #find(run: string): RunRow {
    const row = this.#sql.findRun().get(run) as RunRow | undefined;
    if (row === undefined) throw runNotFound(run);
    return row;
  }
}
