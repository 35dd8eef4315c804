/**
 * Appends that touch nothing but their run: many of them in one statement, while as many statements are under way as are good for the
 * server. One alone is sent at once. An append that is refused leaves the others as they are.
 */
import { PilotageError, type WaitChanges } from '#core';
import type { AppendText } from '../encoded.ts';
import type { Append } from '../port.ts';
import { assertCurrent, assertSeen, runNotFound } from '../rules.ts';
import { type Database, NOW_1, type Sql, type SqlValue, TIME_1 } from './database.ts';
import { isConflict } from './failures.ts';
import { findRun } from './run-rows.ts';

/** In the order of their keys, as all do who hold several runs. The row decides: whoever has changed it meanwhile is waited for, and its newest version is asked once more. */
const APPEND = `
  WITH asked AS (
    SELECT * FROM unnest($2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::int[], $7::bigint[], $8::float8[], $9::text[], $10::text[])
      AS asked (number, run, fence, expected, added, seen, lease_ms, status, agent)
  ),
  held AS MATERIALIZED (
    SELECT key, id, fence, head, signals, owner FROM {runs} WHERE id = ANY($3::text[]) ORDER BY key FOR UPDATE
  ),
  fit AS MATERIALIZED (
    SELECT held.key, asked.* FROM held JOIN asked ON asked.run = held.id
    WHERE held.fence = asked.fence AND held.head = asked.expected AND (asked.seen IS NULL OR held.signals <= asked.seen)
      AND (asked.lease_ms IS NULL OR held.owner IS NOT NULL)
  ),
  moved AS (
    UPDATE {runs} AS runs SET
      head = runs.head + fit.added,
      updated_at = ${NOW_1},
      status = coalesce(fit.status, runs.status),
      agent = coalesce(fit.agent, runs.agent),
      lease_until = CASE WHEN fit.lease_ms IS NULL THEN runs.lease_until ELSE ceil(${TIME_1} + fit.lease_ms)::bigint END
    FROM fit WHERE runs.key = fit.key
    RETURNING runs.key, fit.number
  ),
  written AS (
    INSERT INTO {entries} (run, seq, at, body)
    SELECT moved.key, entry.seq, ${NOW_1}, entry.body
    FROM moved JOIN unnest($11::int[], $12::bigint[], $13::text[]) AS entry (number, seq, body) ON entry.number = moved.number
  ),
  taken AS (
    UPDATE {controls} AS controls SET body = NULL
    FROM moved JOIN unnest($14::int[], $15::text[]) AS take (number, id) ON take.number = moved.number
    WHERE controls.run = moved.key AND controls.id = take.id
  ),
  over AS (
    DELETE FROM {open_waits} AS open_waits
    USING moved JOIN unnest($16::int[], $17::text[]) AS wait (number, id) ON wait.number = moved.number
    WHERE open_waits.run = moved.key AND (wait.id IS NULL OR open_waits.id = wait.id)
  )
  SELECT number FROM moved`;

/**
 * The same for one append that takes nothing out of the inbox, as most are alone: with what it says and no more, which is a third of its cost.
 * There are few such texts, since few of these say something else, and each is made once.
 */
async function appendOne(sql: Sql, given: number | null, { append, bodies, agent }: AppendText): Promise<boolean> {
  const { run, fence, expected, seenSignals, leaseMs, status } = append;
  const said = [seenSignals, leaseMs, status, agent];
  const [body = ''] = bodies;
  const isOne = bodies.length === 1;
  const shape = said.reduce<number>((bits, value) => bits * 2 + (value === undefined ? 0 : 1), isOne ? 1 : 0);
  let text = ONE.get(shape);
  if (text === undefined) {
    text = textOf(isOne, said);
    ONE.set(shape, text);
  }
  const values: SqlValue[] = [given, run, fence, expected, isOne ? body : bodies];
  for (const value of said) if (value !== undefined) values.push(value);
  return (await sql.run(text, ...values)) > 0;
}

const ONE = new Map<number, string>();

/** @param said what is there of the numbers of signals, the lease, the status and the agent. */
function textOf(isOne: boolean, said: readonly unknown[]): string {
  let last = 5;
  const [seen = '', lease = '', status = '', agent = ''] = said.map((value) =>
    value === undefined ? undefined : `$${++last}`,
  );
  const sets = [
    status && `, status = ${status}::text`,
    agent && `, agent = ${agent}::text`,
    lease && `, lease_until = ceil(${TIME_1} + ${lease}::float8)::bigint`,
  ].join('');
  const asked = [seen && `AND signals <= ${seen}::bigint`, lease && 'AND owner IS NOT NULL'].join(' ');
  const entries = isOne
    ? `SELECT key, $4::bigint + 1, ${NOW_1}, $5::text FROM moved`
    : `
        SELECT key, $4::bigint + place, ${NOW_1}, body
        FROM moved CROSS JOIN unnest($5::text[]) WITH ORDINALITY AS entry (body, place)`;
  return `
    WITH moved AS (
      UPDATE {runs} SET head = head + ${isOne ? '1' : 'cardinality($5::text[])'}, updated_at = ${NOW_1}${sets}
      WHERE id = $2 AND fence = $3::bigint AND head = $4::bigint ${asked} RETURNING key
    )
    INSERT INTO {entries} (run, seq, at, body) ${entries}`;
}

/** The waits that are over, by their ids; `null`: all. */
function waitsOver({ ends, removes = [] }: WaitChanges = {}): readonly (string | null)[] {
  return ends === true ? [null] : removes;
}

/**
 * @param withWaits the waits that end with them leave the index in the same statement.
 * @returns for each append, in order, whether it was written.
 */
export async function appendAll(
  sql: Sql,
  given: number | null,
  texts: readonly AppendText[],
  withWaits = false,
): Promise<readonly boolean[]> {
  const [alone, ...others] = texts;
  const isAlone = alone !== undefined && others.length === 0 && alone.bodies.length > 0;
  if (isAlone && !alone.append.takes?.length && !(withWaits && alone.append.waits))
    return [await appendOne(sql, given, alone)];
  const appends = texts.map(({ append }) => append);
  const entries = texts.flatMap(({ append, bodies }, number) =>
    bodies.map((body, index) => ({ number, seq: append.expected + 1 + index, body })),
  );
  const over = withWaits ? appends.flatMap(({ waits }, number) => waitsOver(waits).map((id) => ({ number, id }))) : [];
  const takes = appends.flatMap(({ takes = [] }, number) => takes.map((id) => ({ number, id })));
  const rows = await sql.rows<{ readonly number: number }>(
    APPEND,
    given,
    appends.map((_, number) => number),
    appends.map(({ run }) => run),
    appends.map(({ fence }) => fence),
    appends.map(({ expected }) => expected),
    texts.map(({ bodies }) => bodies.length),
    appends.map(({ seenSignals = null }) => seenSignals),
    appends.map(({ leaseMs = null }) => leaseMs),
    appends.map(({ status = null }) => status),
    texts.map(({ agent = null }) => agent),
    entries.map(({ number }) => number),
    entries.map(({ seq }) => seq),
    entries.map(({ body }) => body),
    takes.map(({ number }) => number),
    takes.map(({ id }) => id),
    over.map(({ number }) => number),
    over.map(({ id }) => id),
  );
  const written = new Set(rows.map(({ number }) => number));
  return texts.map((_, number) => written.has(number));
}

/** Why an append was not written. `undefined`: the run has changed since, and it may be tried again. */
async function whyNotAppended(sql: Sql, append: Append): Promise<PilotageError | undefined> {
  const row = await findRun(sql, append.run);
  if (row === undefined) return runNotFound(append.run);
  try {
    assertCurrent(append, row);
    assertSeen(append, row.signals);
    return undefined;
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return error;
  }
}

interface Waiting {
  readonly text: AppendText;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const MOST_AT_ONCE = 256;
/** What comes while a statement is under way goes together with the next one; but one that stands still for so long holds up no others. */
const STALLED_MS = 10;
const MOST_STATEMENTS = 4;
/** An append whose run changes again and again has lost its lease, or shares it with another. */
const MOST_TRIES = 5;

export class AppendQueue {
  readonly #database: Database;
  #queue: Waiting[] = [];
  #underWay = 0;
  /** By the monotonic clock of the machine: when the last statement was sent. */
  #sentAt = 0;
  #stalled: NodeJS.Timeout | undefined;
  /** The runs of a statement that has just ended go on in this turn, and their next appends go together. */
  #gathers = false;

  constructor(database: Database) {
    this.#database = database;
  }

  append(text: AppendText): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ text, resolve, reject });
      // What comes in the same turn goes with it.
      if (this.#queue.length === 1) queueMicrotask(() => this.#send());
    });
  }

  #send(): void {
    if (this.#queue.length === 0 || this.#underWay === MOST_STATEMENTS || this.#gathers) return;
    if (this.#underWay > 0) {
      const leftMs = this.#sentAt + STALLED_MS - performance.now();
      if (leftMs > 0) {
        if (this.#stalled === undefined) this.#stalled = setTimeout(() => this.#sendBeside(), leftMs);
        return;
      }
    }
    const batch = this.#queue.splice(0, MOST_AT_ONCE);
    this.#underWay += 1;
    this.#sentAt = performance.now();
    void this.#write(batch).finally(() => {
      this.#underWay -= 1;
      if (batch.length === 1) return this.#send();
      this.#gathers = true;
      setImmediate(() => {
        this.#gathers = false;
        this.#send();
      });
    });
    this.#send();
  }

  #sendBeside(): void {
    this.#stalled = undefined;
    this.#send();
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    try {
      const written = await this.#once(batch.map(({ text }) => text));
      for (const [index, waiting] of batch.entries()) {
        if (written[index] === true) waiting.resolve();
        else await this.#alone(waiting);
      }
    } catch (error) {
      // One of them may be at fault: then the others are written without it.
      if (batch.length === 1 || !isOfOne(error)) for (const { reject } of batch) reject(error);
      else for (const waiting of batch) await this.#write([waiting]);
    }
  }

  async #alone({ text, resolve, reject }: Waiting): Promise<void> {
    try {
      for (let tries = 1; ; tries += 1) {
        const why = await this.#database.read((sql) => whyNotAppended(sql, text.append));
        if (why !== undefined) throw why;
        const [isWritten] = await this.#once([text]);
        if (isWritten === true) return resolve();
        if (tries >= MOST_TRIES)
          throw new PilotageError('journal_busy', `Run ${text.append.run} changes all the time. Try again.`);
      }
    } catch (error) {
      reject(error);
    }
  }

  /** Two statements that got into each other's way are told apart by the server, which ends one of them. */
  async #once(texts: readonly AppendText[]): Promise<readonly boolean[]> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#database.read((sql) => appendAll(sql, this.#database.given, texts, true));
      } catch (error) {
        const cause = error instanceof Error ? error.cause : undefined;
        if (!isConflict(cause) || tries >= MOST_TRIES) throw error;
      }
    }
  }
}

/** What the server says of a text that it cannot take. */
function isOfOne(error: unknown): boolean {
  return PilotageError.is(error, 'invalid_config') || PilotageError.is(error, 'journal_corrupt');
}
