/**
 * Appends that touch nothing but their run: many of them in one statement, while as many statements are under way as are good for the
 * server. One alone is sent at once. An append that is refused leaves the others as they are.
 */
import { PilotageError } from '#core';
import type { AppendText } from '../encoded.ts';
import type { Append } from '../port.ts';
import { assertCurrent, assertSeen, runNotFound } from '../rules.ts';
import { type Database, NOW_1, type Sql, TIME_1 } from './database.ts';
import { isConflict } from './failures.ts';
import { findRun } from './run-rows.ts';

/** The row decides: whoever has changed it meanwhile is waited for, and its newest version is asked once more. */
const APPEND = `
  WITH asked AS (
    SELECT * FROM unnest($2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::int[], $7::bigint[], $8::float8[], $9::text[], $10::text[])
      AS asked (number, run, fence, expected, added, seen, lease_ms, status, agent)
  ),
  moved AS (
    UPDATE {runs} AS runs SET
      head = runs.head + asked.added,
      updated_at = ${NOW_1},
      status = coalesce(asked.status, runs.status),
      agent = coalesce(asked.agent, runs.agent),
      lease_until = CASE WHEN asked.lease_ms IS NULL THEN runs.lease_until ELSE ceil(${TIME_1} + asked.lease_ms)::bigint END
    FROM asked
    WHERE runs.id = asked.run AND runs.fence = asked.fence AND runs.head = asked.expected
      AND (asked.seen IS NULL OR runs.signals <= asked.seen) AND (asked.lease_ms IS NULL OR runs.owner IS NOT NULL)
    RETURNING runs.key, asked.number
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
  )
  SELECT key, number FROM moved`;

/** The same for one append that takes nothing out of the inbox: most are alone, and cost a third less so. */
const APPEND_ONE = `
  WITH moved AS (
    UPDATE {runs} SET
      head = head + $5::int,
      updated_at = ${NOW_1},
      status = coalesce($8::text, status),
      agent = coalesce($9::text, agent),
      lease_until = CASE WHEN $7::float8 IS NULL THEN lease_until ELSE ceil(${TIME_1} + $7::float8)::bigint END
    WHERE id = $2 AND fence = $3::bigint AND head = $4::bigint
      AND ($6::bigint IS NULL OR signals <= $6::bigint) AND ($7::float8 IS NULL OR owner IS NOT NULL)
    RETURNING key
  ),
  written AS (
    INSERT INTO {entries} (run, seq, at, body)
    SELECT moved.key, $4::bigint + entry.place, ${NOW_1}, entry.body
    FROM moved CROSS JOIN unnest($10::text[]) WITH ORDINALITY AS entry (body, place)
  )
  SELECT key FROM moved`;

async function appendOne(
  sql: Sql,
  given: number | null,
  { append, bodies, agent }: AppendText,
): Promise<number | undefined> {
  const { run, fence, expected, seenSignals = null, leaseMs = null, status = null } = append;
  const asked = [run, fence, expected, bodies.length, seenSignals, leaseMs, status, agent ?? null] as const;
  return (await sql.row<{ readonly key: number }>(APPEND_ONE, given, ...asked, bodies))?.key;
}

/** @returns for each append, in order, the key of its run; `undefined`: it was not written. */
export async function appendAll(
  sql: Sql,
  given: number | null,
  texts: readonly AppendText[],
): Promise<readonly (number | undefined)[]> {
  const [alone, ...others] = texts;
  if (alone !== undefined && others.length === 0 && !alone.append.takes?.length) {
    return [await appendOne(sql, given, alone)];
  }
  const appends = texts.map(({ append }) => append);
  const entries = texts.flatMap(({ append, bodies }, number) =>
    bodies.map((body, index) => ({ number, seq: append.expected + 1 + index, body })),
  );
  const takes = appends.flatMap(({ takes = [] }, number) => takes.map((id) => ({ number, id })));
  const rows = await sql.rows<{ readonly key: number; readonly number: number }>(
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
  );
  const keys = new Map(rows.map(({ key, number }) => [number, key]));
  return texts.map((_, number) => keys.get(number));
}

/** Why an append was not written. `undefined`: the run has changed since, and it may be tried again. */
export async function whyNotAppended(sql: Sql, append: Append): Promise<PilotageError | undefined> {
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
const MOST_STATEMENTS = 4;
/** An append whose run changes again and again has lost its lease, or shares it with another. */
const MOST_TRIES = 5;

export class AppendQueue {
  readonly #database: Database;
  #queue: Waiting[] = [];
  #underWay = 0;

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
    while (this.#queue.length > 0 && this.#underWay < MOST_STATEMENTS) {
      const batch = this.#queue.splice(0, MOST_AT_ONCE);
      this.#underWay += 1;
      void this.#write(batch).finally(() => {
        this.#underWay -= 1;
        this.#send();
      });
    }
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    try {
      const written = await this.#once(batch.map(({ text }) => text));
      for (const [index, waiting] of batch.entries()) {
        if (written[index] === undefined) await this.#alone(waiting);
        else waiting.resolve();
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
        const [key] = await this.#once([text]);
        if (key !== undefined) return resolve();
        if (tries >= MOST_TRIES)
          throw new PilotageError('journal_busy', `Run ${text.append.run} changes all the time. Try again.`);
      }
    } catch (error) {
      reject(error);
    }
  }

  /** Two statements that got into each other's way are told apart by the server, which ends one of them. */
  async #once(texts: readonly AppendText[]): Promise<readonly (number | undefined)[]> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#database.read((sql) => appendAll(sql, this.#database.given, texts));
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
