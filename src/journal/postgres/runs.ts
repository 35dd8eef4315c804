/** Transactions on runs, entries and what was said to runs, where one statement does not do. */
import { type Entry, encodeEntry, PilotageError, type StartKey, type WaitChanges } from '#core';
import {
  type AppendText,
  encodeRun,
  type MessageText,
  type RunText,
  type SendingText,
  type ToldText,
} from '../encoded.ts';
import type { Append, Claim, NewRun, Sent, SignalOptions, StartedByKey } from '../port.ts';
import {
  assertCurrent,
  assertInTime,
  assertMayGoOn,
  assertNewRun,
  assertOwnStarts,
  assertRoom,
  assertSeen,
  assertSessionSeen,
  assertTakesSignals,
  assertTreeLimit,
  hasEnded,
  isReopening,
  isTurn,
  type Owned,
  runNotFound,
  sourceOf,
} from '../rules.ts';
import { beginningAt, decideStart, firstWake, inPlaceOf, isYetToBegin, type KeyedRuns } from '../start-rules.ts';
import { decodeRow, type EntryRow } from '../stored-runs.ts';
import { appendAll } from './appends.ts';
import type { PostgresClaims } from './claims.ts';
import { type Database, type Lock, NOW_1, type Sql, sessionLock, TIME_1, type Times } from './database.ts';
import { hasMessage, waitingControls } from './inbox.ts';
import { writeItems } from './items.ts';
import { findRun, HAS_ENDED, holdRun, holdRuns, type RunRow } from './run-rows.ts';
import { moveOn } from './schedules.ts';
import { addStartKey, began, firstAt, keyRows, replaceStart } from './starts.ts';
import type { PostgresTurns } from './turns.ts';
import type { PostgresWaits } from './waits.ts';

const COLUMNS = `id, tenant, "user", session, agent, parent, root, priority, created_at, updated_at, head`;
const ENTRIES = `
  INSERT INTO {entries} (run, seq, at, body)
  SELECT made.key, entry.seq, NOW, entry.body FROM made CROSS JOIN unnest($12::text[]) WITH ORDINALITY AS entry (body, seq)`;
const CREATE = `
  WITH made AS (
    INSERT INTO {runs} (${COLUMNS}, status, wake_at, starts_at)
    VALUES ($2, $3, $4, $5, $6, $7, $8, $9::bigint, $1::bigint, $1::bigint, $10::bigint, 'pending', $11::bigint, nullif($11::bigint, 0))
    ON CONFLICT (id) DO NOTHING RETURNING key
  ), written AS (${ENTRIES.replace('NOW', '$1::bigint')}) SELECT key FROM made`;
/** A run that stands in no line of turns, and about which nothing else is said, takes a single round trip. */
const CREATE_ALONE = `
  WITH made AS (
    INSERT INTO {runs} (${COLUMNS}, status, owner, lease_until, fence)
    VALUES ($2, $3, $4, $5, $6, $7, $8, $9::bigint, ${NOW_1}, ${NOW_1}, $10::bigint,
      CASE WHEN $11::text IS NULL THEN 'pending' ELSE 'running' END, $11::text, ceil(${TIME_1} + $13::float8)::bigint,
      CASE WHEN $11::text IS NULL THEN 0 ELSE 1 END)
    ON CONFLICT (id) DO NOTHING RETURNING key
  ), written AS (${ENTRIES.replace('NOW', NOW_1)}) SELECT key FROM made`;
const TELL = (where: string): string => `
  WITH run AS (SELECT key, signals FROM {runs} WHERE ${where} AND NOT (${HAS_ENDED}) FOR UPDATE),
  put AS (
    INSERT INTO {controls} (run, id, number, stored_at, capped, body)
    SELECT key, $2, signals + 1, $3::bigint, $4::boolean, $5 FROM run ON CONFLICT (run, id) DO NOTHING RETURNING run
  )
  UPDATE {runs} AS runs SET signals = signals + 1, wake_at = 0, updated_at = $3::bigint, priority = coalesce($6::bigint, priority)
  FROM put WHERE runs.key = put.run RETURNING runs.id`;
const TELL_ID = TELL('id = $1');
const TELL_KEY = TELL('key = $1::bigint');
const READ = `
  SELECT runs.head, entries.seq, entries.body FROM {runs} AS runs
  LEFT JOIN {entries} AS entries ON entries.run = runs.key AND entries.seq >= $2::bigint AND entries.seq < $3::bigint AND entries.seq <= runs.head
  WHERE runs.id = $1 ORDER BY entries.seq`;
const SET_STATUS = 'UPDATE {runs} SET status = $2 WHERE key = $1';
/** The run is not deleted before the transaction is over. */
const KEEP = 'SELECT key FROM {runs} WHERE id = $1 FOR KEY SHARE';
const OWNED = 'SELECT id, tenant, "user", session, parent FROM {runs} WHERE id = ANY($1::text[])';
const LIVE_UNDER = `SELECT root, count(*) AS live FROM {runs} WHERE root = ANY($1::text[]) AND NOT (${HAS_ENDED}) GROUP BY root`;
const MOST_SEQ = 2 ** 53 - 1;
/** So many runs are known to be turns, or none. */
const MOST_KNOWN = 20_000;

/** Who else has to look. */
interface Appended {
  /** The turn whose turn it is, when these entries end the one before it. */
  readonly next: string | undefined;
  readonly told: readonly string[];
}

const NOBODY: Appended = Object.freeze({ next: undefined, told: Object.freeze([]) });

interface Beside {
  readonly turns: PostgresTurns;
  readonly waits: PostgresWaits;
  readonly claims: PostgresClaims;
}

export class PostgresRuns {
  readonly #database: Database;
  readonly #beside: Beside;
  /** The locks of the sessions of runs that are turns; `null`: the run is not a turn. What a run is does not change. */
  readonly #sessions = new Map<string, Lock | null>();

  constructor(database: Database, beside: Beside) {
    this.#database = database;
    this.#beside = beside;
  }

  async create(text: RunText): Promise<Claim | undefined> {
    const { run, first } = text;
    const isAlone =
      !isTurn(first) &&
      first.fork === undefined &&
      run.openWaits === undefined &&
      run.fires === undefined &&
      first.startsAt === undefined;
    if (isAlone && first.labels === undefined && first.schedule === undefined) return this.#createAlone(text);
    return this.#database.write(locksOf(text), (sql, times) => this.createIn(sql, text, times));
  }

  async #createAlone({ run, first, bodies }: RunText): Promise<Claim | undefined> {
    const { given } = this.#database;
    const { owner = null, leaseMs = null } = run.claim ?? {};
    const values = valuesOf({ run, first, bodies });
    const made = await this.#database.read(async (sql) => {
      const row = await sql.row(CREATE_ALONE, given, ...values, owner, bodies, leaseMs);
      if (row === undefined) await this.#assertSeen(sql, run.identity.run);
      return row;
    });
    if (made === undefined) return undefined;
    this.note({ id: run.identity.run, turn: null, ...run.identity });
    if (run.claim === undefined) return undefined;
    const before = { status: 'pending', wakeAt: 0 } as const;
    return { run: run.identity.run, fence: 1, head: bodies.length, signals: 0, before };
  }

  /** In a transaction that has the locks of the run. */
  async createIn(sql: Sql, { run, first, bodies }: RunText, times: Times): Promise<Claim | undefined> {
    const { now, time } = times;
    // It may be refused, and then nothing is stored.
    if (run.fires !== undefined) await moveOn(sql, run.fires, now);
    const wakeAt = firstWake(first, time);
    const made = await sql.row<{ key: number }>(CREATE, now, ...valuesOf({ run, first, bodies }), wakeAt, bodies);
    if (made === undefined) {
      await this.#assertSeen(sql, run.identity.run);
      return undefined;
    }
    const source = sourceOf(first);
    if (source !== undefined && (await sql.row(KEEP, source)) === undefined) throw runNotFound(source);
    this.note({ id: run.identity.run, turn: isTurn(first) ? 1 : null, ...run.identity });
    const waits = isTurn(first) && (await this.#beside.turns.add(sql, run.identity, run.waits));
    if (run.openWaits !== undefined) await this.#beside.waits.replace(sql, made.key, run.openWaits, now);
    await began(sql, made.key, first);
    if (run.claim === undefined || waits || wakeAt > 0) return undefined;
    return this.#beside.claims.grantNew(sql, made.key, run.claim);
  }

  /** A run that is there, and that a policy keeps from being seen, is another tenant's. */
  async #assertSeen(sql: Sql, run: string): Promise<void> {
    if (!this.#database.isIsolated || (await findRun(sql, run)) !== undefined) return;
    throw new PilotageError(
      'scope_mismatch',
      `The run id ${run} cannot be used. Leave it out, and a fresh one is made.`,
      {
        data: { run },
      },
    );
  }

  startByKey(text: RunText, key: StartKey): Promise<StartedByKey> {
    const { run: given } = text;
    const { tenant, run: id } = given.identity;
    const locks: Lock[] = [['start', tenant, key.kind, key.key], ...locksOf(text)];
    return this.#database.write(locks, async (sql, times) => {
      if ((await findRun(sql, id)) !== undefined) return { run: id };
      const rows = await keyRows(sql, tenant, key);
      const held = await holdRuns(
        sql,
        rows.slice(0, 1).map(({ run }) => run),
      );
      const decision = decideStart(key, rows, keyedRuns(held, times.time), Math.ceil(times.time));
      if (decision.do === 'join') return { run: decision.run };
      if (decision.do === 'replace') {
        await this.#replace(sql, held.get(decision.run), given, decision.startsAt, times);
        return { run: decision.run };
      }
      const claim = await this.createIn(sql, encodeRun(beginningAt(given, decision.startsAt)), times);
      const number = (await findRun(sql, id))?.key ?? 0;
      await addStartKey(sql, { tenant, run: id, number }, key, decision, times.now);
      return { run: id, ...(claim === undefined ? {} : { claim }) };
    });
  }

  async #replace(
    sql: Sql,
    row: RunRow | undefined,
    given: NewRun,
    startsAt: number,
    { now, time }: Times,
  ): Promise<void> {
    if (row === undefined) return;
    const { key, id: run, tenant, user, session } = row;
    const before = { identity: { tenant, user, session, run }, at: await firstAt(sql, key) };
    const { first } = inPlaceOf(given, before, startsAt);
    const text = { first, body: encodeEntry(first), priority: given.priority };
    await replaceStart(sql, key, text, firstWake(first, time), now);
  }

  /** Whether one statement does not do. */
  async locksFor(text: AppendText): Promise<readonly Lock[] | undefined> {
    const { append, starts = [], tells = [] } = text;
    const { run, status, writes, waits } = append;
    const ends = status !== undefined && hasEnded(status);
    const session = ends || isReopening(append) ? await this.#sessionOf(run) : null;
    const isAlone = starts.length + tells.length + (writes?.length ?? 0) === 0 && !begins(waits);
    if (isAlone && session === null && !isReopening(append)) return undefined;
    const locks: Lock[] = session === null ? [] : [session];
    const keys = [...(waits?.adds ?? []), ...(waits?.returns ?? [])].flatMap(({ key }) => key ?? []);
    if (keys.length > 0) {
      const tenant = (await this.#database.read((sql) => findRun(sql, run)))?.tenant ?? '';
      locks.push(...keys.map((key) => ['signal', tenant, key] as const));
    }
    return [...locks, ...starts.flatMap(locksOf)];
  }

  append(text: AppendText, locks: readonly Lock[]): Promise<Appended> {
    const { append, starts = [], tells = [] } = text;
    const { run, status, writes, waits } = append;
    return this.#database.write(locks, async (sql, times) => {
      const { now } = times;
      const held = await holdRuns(sql, [run, ...tells.map((told) => told.run)]);
      const row = held.get(run);
      if (row === undefined) throw runNotFound(run);
      if (isReopening(append)) assertMayGoOn(run, await this.#beside.turns.otherInTurn(sql, run));
      assertCurrent(append, row);
      assertSeen(append, row.signals);
      if (starts.length > 0) await assertMayStart(sql, append);
      const { status: _, ...open } = append;
      const [isWritten] = await appendAll(sql, this.#database.given, [
        starts.length === 0 ? text : { ...text, append: open },
      ]);
      if (isWritten !== true) throw new Error(`the append to run ${run} was refused, though its row allows it`);
      // Before this run ends: the turn that comes next may be one of them.
      for (const start of starts) await this.createIn(sql, start, times);
      if (starts.length > 0 && status !== undefined) await sql.run(SET_STATUS, row.key, status);
      for (const told of tells) await tell(sql, told, now);
      if (writes !== undefined) await writeItems(sql, writes, now);
      const told = waits === undefined ? NOBODY.told : await this.#beside.waits.change(sql, row.key, waits, now);
      const isOver = status !== undefined && hasEnded(status) && row.turn !== null;
      return { next: isOver ? await this.#beside.turns.ended(sql, run) : undefined, told };
    });
  }

  async #sessionOf(run: string): Promise<Lock | null> {
    const known = this.#sessions.get(run);
    if (known !== undefined) return known;
    const row = await this.#database.read((sql) => findRun(sql, run));
    if (row === undefined) return null;
    this.note(row);
    return this.#sessions.get(run) ?? null;
  }

  /** What is known of a run is not asked for at its end. */
  note({ id, turn, tenant, user, session }: Pick<RunRow, 'id' | 'turn' | 'tenant' | 'user' | 'session'>): void {
    if (this.#sessions.size >= MOST_KNOWN) this.#sessions.clear();
    this.#sessions.set(id, turn === null ? null : sessionLock({ tenant, user, session }));
  }

  send({ sending, starts, tells }: SendingText): Promise<Sent> {
    const { scope } = sending;
    const locks = [sessionLock(scope), ...(starts === undefined ? [] : locksOf(starts))];
    return this.#database.write(locks, async (sql, times): Promise<Sent> => {
      const { turns } = this.#beside;
      const before = await turns.acceptedIn(sql, sending);
      if (before !== undefined) return { run: before };
      const held = await holdRuns(
        sql,
        tells.map(({ run }) => run),
      );
      const standing = await turns.standing(sql, scope);
      assertSessionSeen(sending, standing, () => standing.hasTurns);
      for (const { run, message } of tells) {
        const row = held.get(run);
        if (row === undefined) throw runNotFound(run);
        if (message.isCapped) assertRoom(run, await waitingControls(sql, row.key));
      }
      if (sending.fires !== undefined) await moveOn(sql, sending.fires, times.now);
      const claim = starts && (await this.createIn(sql, starts, times));
      if (starts !== undefined) await turns.set(sql, scope, { branch: null });
      for (const told of tells) await tell(sql, told, times.now);
      return { claim };
    });
  }

  signal(run: string, message: MessageText, options: SignalOptions): Promise<boolean> {
    return this.#database.write([], async (sql, { now }) => {
      const row = await holdRun(sql, run);
      if (await hasMessage(sql, row.key, message.id)) return false;
      assertTakesSignals(run, row.status);
      assertInTime(options, now);
      if (message.isCapped) assertRoom(run, await waitingControls(sql, row.key));
      await sql.run(TELL_KEY, row.key, ...said(message, now), options.priority ?? null);
      return true;
    });
  }

  /** For the events of a signal. @returns the run; `undefined`: it has had the message, or has ended. */
  static async tellKey(sql: Sql, key: number, message: MessageText, now: number): Promise<string | undefined> {
    return (await sql.row<{ id: string }>(TELL_KEY, key, ...said(message, now), null))?.id;
  }

  /** Entries with a seq from `from` up to, and without, `end`. */
  async read(run: string, from: number, end: number): Promise<Entry[]> {
    const last = Math.min(end, MOST_SEQ);
    const rows = await this.#database.read((sql) =>
      sql.rows<{ head: number; seq: number | null; body: string | null }>(READ, run, from, last),
    );
    const [{ head } = { head: undefined }] = rows;
    if (head === undefined) throw runNotFound(run);
    const found = rows.filter((row): row is EntryRow & { head: number } => row.seq !== null);
    const wanted = Math.max(0, Math.min(head + 1, end) - from);
    // A run is stored with its first entry: one without entries would be waited for for ever.
    if (found.length !== wanted || head < 1) {
      throw new PilotageError(
        'journal_corrupt',
        `Run ${run} has ${found.length} of the ${wanted} entries from ${from} on. Restore the journal from a backup, or see with pilotage repair what is left.`,
        { data: { run } },
      );
    }
    return found.map((entry) => decodeRow(run, entry));
  }
}

/** Whether something begins to wait, or a signal is given back: what only ends is one more part of a statement. */
function begins({ adds = [], returns = [] }: WaitChanges = {}): boolean {
  return adds.length + returns.length > 0;
}

async function tell(sql: Sql, { run, message }: ToldText, now: number): Promise<void> {
  await sql.run(TELL_ID, run, ...said(message, now), null);
}

function said({ id, isCapped, body }: MessageText, now: number): [string, number, boolean, string] {
  return [id, now, isCapped, body];
}

function valuesOf({ run, first, bodies }: RunText) {
  const { run: id, tenant, user, session } = run.identity;
  const { parent = null, root = null } = first.task ?? {};
  return [id, tenant, user, session, first.agent, parent, root, run.priority, bodies.length] as const;
}

/** What a new run has to do with: its session where it is a turn, its tree where it is a task, and what it waits for. */
export function locksOf({ run, first }: RunText): Lock[] {
  const { tenant } = run.identity;
  const locks: Lock[] = isTurn(first) ? [sessionLock(run.identity)] : [];
  if (first.task !== undefined) locks.push(['tree', first.task.root]);
  for (const { key } of run.openWaits ?? []) if (key !== undefined) locks.push(['signal', tenant, key]);
  return locks;
}

async function assertMayStart(sql: Sql, append: Append): Promise<void> {
  const starts = append.starts ?? [];
  const owned = await sql.rows<Owned & { id: string }>(
    OWNED,
    starts.map(({ identity }) => identity.run),
  );
  const there = new Map(owned.map(({ id, ...row }) => [id, row]));
  const roots = [...new Set(starts.flatMap((start) => assertNewRun(start).task?.root ?? []))];
  const counts =
    append.treeLimit === undefined ? [] : await sql.rows<{ root: string; live: number }>(LIVE_UNDER, roots);
  const live = new Map(counts.map(({ root, live }) => [root, live]));
  const tree = { find: (run: string) => there.get(run), live: (root: string) => live.get(root) ?? 0 };
  assertOwnStarts(append, tree);
  assertTreeLimit(append, tree);
}

function keyedRuns(held: ReadonlyMap<string, RunRow>, now: number): KeyedRuns {
  const has = (run: string, test: (row: RunRow) => boolean): boolean => {
    const row = held.get(run);
    return row !== undefined && test(row);
  };
  return {
    isUnderWay: (run) => has(run, ({ status }) => !hasEnded(status)),
    isYetToBegin: (run) => has(run, (row) => isYetToBegin({ ...row, wakeAt: row.wake_at }, now)),
  };
}
