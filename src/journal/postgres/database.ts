/**
 * The way to Postgres: connections, statements and transactions. A statement is written with the names of our tables in braces (`{runs}`),
 * which stand for the tables of the journal's schema.
 */
import { createHash } from 'node:crypto';
import type { Client, Pool, PoolClient, QueryConfig } from 'pg';
import { type Clock, PilotageError, type Scope } from '#core';
import { journalClosed } from '../rules.ts';
import { isConflict, postgresError, stateOf } from './failures.ts';
import { StoreTime } from './store-time.ts';
import { type Isolation, ownRuns, sayingOf } from './tenant-settings.ts';

export type SqlValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | readonly (string | number | null | boolean)[];

/** What a statement is run on: any connection, or the one of a transaction. */
export interface Sql {
  /** The rows that the statement gives. Their shape is what its text asks for. */
  rows<Row>(text: string, ...values: SqlValue[]): Promise<Row[]>;
  /** The first row. */
  row<Row>(text: string, ...values: SqlValue[]): Promise<Row | undefined>;
  /** @returns how many rows it has changed. */
  run(text: string, ...values: SqlValue[]): Promise<number>;
}

/** The time of a transaction, by the database's clock, or by the journal's own where it has one. Milliseconds since the epoch. */
export interface Times {
  /** Whole milliseconds, as they are stored. */
  readonly now: number;
  /** With the fraction, so that nothing ends earlier than was asked for. */
  readonly time: number;
}

/** What a transaction takes hold of before it looks at anything: whoever takes hold of the same waits until it is over. */
export type Lock = readonly [kind: 'session' | 'tree' | 'signal' | 'start' | 'item', ...of: string[]];

export function sessionLock({ tenant, user, session }: Scope): Lock {
  return ['session', tenant, user, session];
}

/** Another one for each lock. */
export function lockName(lock: Lock): string {
  return JSON.stringify(lock);
}

export interface DatabaseOptions {
  readonly schema: string;
  /** Gives a pool; it is asked once. */
  readonly connect: () => Promise<Pool>;
  /** A client with the same options, which is not connected yet. */
  readonly connectAlone: (pool: Pool) => Promise<Client>;
  /** Whether the pool is the journal's own, to be ended with it. */
  readonly isOwn: boolean;
  /** Whether statements are prepared on the connections. */
  readonly prepares: boolean;
  readonly clock: Clock | undefined;
  /** Whom the journal serves, where tenants are separated by policies. */
  readonly isolation: Isolation | undefined;
  /** Whether each transaction says it, and each statement is one: connections are those of others too. */
  readonly saysEachTime: boolean;
  /** Makes the tables, or brings them to the present version. */
  readonly prepare: (database: Database) => Promise<void>;
}

/** A statement that takes longer is given up by the server, and a connection that stands still in a transaction is cut by it. */
export const STATEMENT_MS = 15_000;
/** A process that is frozen in a transaction holds up all others for no longer than this. */
export const IDLE_IN_TRANSACTION_MS = 5_000;
/** Transactions that have got into each other's way are tried again so often. */
const MOST_TRIES = 8;
const CLOCK = 'extract(epoch FROM clock_timestamp()) * 1000';
/** In SQL, for a statement whose first parameter is `Database.given`: the time, whole and with its fraction. */
// That of the statement: one that changed meanwhile could be compared with no index. Not by `coalesce`, which under row-level security keeps a
// comparison from the index.
export const TIME_1: string =
  '(CASE WHEN $1::float8 IS NULL THEN extract(epoch FROM statement_timestamp()) * 1000 ELSE $1::float8 END)';
export const NOW_1: string = `floor(${TIME_1})::bigint`;
const INT8 = 20;
const NUMERIC = 1_700;

export class Database {
  readonly #options: DatabaseOptions;
  readonly #texts = new Map<string, Pick<QueryConfig, 'name' | 'text'>>();
  readonly #quoted: string;
  readonly #own: string;
  /** What each transaction begins with. */
  readonly #says: readonly string[];
  #pool: Promise<Pool> | undefined;
  #ready: Promise<Pool> | undefined;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #time = new StoreTime();
  #closing: Promise<void> | undefined;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    const { schema, isolation, saysEachTime } = options;
    this.#quoted = `"${schema.replaceAll('"', '""')}"`;
    this.#own = ownRuns(isolation);
    this.#says = isolation !== undefined && saysEachTime ? [sayingOf(isolation, true)] : [];
  }

  get quoted(): string {
    return this.#quoted;
  }

  get schema(): string {
    return this.#options.schema;
  }

  /** One statement, or several that need not see the same moment. @throws PilotageError of the store. */
  read<T>(run: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#during(async () => {
      const pool = await this.#open();
      if (this.#says.length > 0) return this.#transact(pool, [], run);
      return run(this.#on((config) => pool.query(config)));
    });
  }

  /**
   * A transaction. `run` may be tried several times.
   * @throws PilotageError of `run`, after which nothing is written, or of the store: then what was written may be there or not.
   */
  write<T>(locks: readonly Lock[], run: (sql: Sql, times: Times) => Promise<T>): Promise<T> {
    return this.#during(async () => {
      const pool = await this.#open();
      return untilNoConflict(() => this.#transact(pool, locks, run));
    });
  }

  /** The time of the journal's own clock, where it has one. */
  get given(): number | null {
    return this.#options.clock?.now() ?? null;
  }

  /** The time by the clock that judges leases and waits, as far as it is known here. */
  now(): number {
    return this.given ?? this.#time.now();
  }

  async #transact<T>(pool: Pool, locks: readonly Lock[], run: (sql: Sql, times: Times) => Promise<T>): Promise<T> {
    return withClient(pool, async (client) => {
      const times = await this.#begin(client, locks);
      const value = await run(
        this.#on((config) => client.query(config)),
        times,
      );
      const { command } = await client.query('COMMIT');
      // The server says so of a transaction in which a statement has failed.
      if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`);
      return value;
    });
  }

  /** One round trip: several statements in one text, which therefore has its numbers in it. */
  async #begin(client: PoolClient, locks: readonly Lock[]): Promise<Times> {
    const numbers = [...new Set(locks.map((lock) => this.#numberOf(lock)))].sort((one, other) =>
      one < other ? -1 : 1,
    );
    const parts = [
      'BEGIN ISOLATION LEVEL READ COMMITTED',
      ...this.#says,
      `SET LOCAL statement_timeout = ${STATEMENT_MS}`,
      `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
      ...numbers.map((number) => `SELECT pg_advisory_xact_lock(${number})`),
      `SELECT ${this.given ?? CLOCK} AS time`,
    ];
    const time = await this.#ask(client, parts.join(';'));
    return { time, now: Math.floor(time) };
  }

  /** @returns the time, which the last statement of the text asks for. */
  async #ask(client: Pick<PoolClient, 'query'>, text: string): Promise<number> {
    const ask = async () => [await client.query(text)].flat() as unknown as readonly { rows: { time: string }[] }[];
    const timeIn = (results: Awaited<ReturnType<typeof ask>>) => Number(results.at(-1)?.rows[0]?.time);
    return timeIn(await (this.given === null ? this.#time.during(ask, timeIn) : ask()));
  }

  #numberOf(lock: Lock): bigint {
    const digest = createHash('sha256')
      .update(`${this.#options.schema} ${lockName(lock)}`)
      .digest();
    return digest.readBigInt64BE(0);
  }

  #on(query: (config: QueryConfig) => Promise<{ rows: unknown[]; rowCount: number | null }>): Sql {
    const ask = (text: string, values: SqlValue[]) => query({ ...this.#statement(text), values, types: TYPES });
    return {
      rows: async <Row>(text: string, ...values: SqlValue[]) => (await ask(text, values)).rows as Row[],
      row: async <Row>(text: string, ...values: SqlValue[]) => (await ask(text, values)).rows[0] as Row | undefined,
      run: async (text, ...values) => (await ask(text, values)).rowCount ?? 0,
    };
  }

  #statement(text: string): Pick<QueryConfig, 'name' | 'text'> {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const full = this.qualify(text);
    const name = `pilotage_${createHash('sha256').update(full).digest('hex').slice(0, 24)}`;
    // Texts that are put together from what is asked for are not kept for ever.
    if (this.#texts.size >= MOST_TEXTS) return { text: full };
    const statement = this.#options.prepares ? { name, text: full } : { text: full };
    this.#texts.set(text, statement);
    return statement;
  }

  /** Whether policies keep rows from being seen. */
  get isIsolated(): boolean {
    return this.#options.isolation !== undefined;
  }

  /** The text with the names of the tables of this journal, and of whom it serves. */
  qualify(text: string): string {
    return text.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      name === 'own' ? this.#own : `${this.#quoted}."${name}"`,
    );
  }

  /** On one connection of the pool, before the tables are there. What it has begun when it throws is rolled back. */
  async onClient<T>(use: (client: PoolClient) => Promise<T>): Promise<T> {
    return withClient(await this.#pooled(), use);
  }

  /** A connection beside the pool, to be ended. */
  async ownClient(): Promise<Client> {
    await this.#open();
    const client = await this.#options.connectAlone(await this.#pooled());
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  #pooled(): Promise<Pool> {
    this.#pool ??= this.#connect().catch((error: unknown) => {
      this.#pool = undefined;
      throw error;
    });
    return this.#pool;
  }

  async #connect(): Promise<Pool> {
    const pool = await this.#options.connect();
    return pool.on('acquire', hearErrors);
  }

  /** The pool, when the tables are there. Whoever comes after a failure tries again. */
  #open(): Promise<Pool> {
    this.#ready ??= this.#prepare().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  async #prepare(): Promise<Pool> {
    const pool = await this.#pooled();
    await this.#options.prepare(this);
    await this.#ask(pool as Pick<PoolClient, 'query'>, `SELECT ${this.given ?? CLOCK} AS time`);
    return pool;
  }

  async #during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw journalClosed();
    const done = work();
    this.#underWay.add(done);
    try {
      return await done;
    } catch (error) {
      throw postgresError(error);
    } finally {
      this.#underWay.delete(done);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    const pool = await this.#pool?.catch(() => undefined);
    pool?.off('acquire', hearErrors);
    if (this.#options.isOwn) await pool?.end();
  }
}

/** Does a whole transaction, and again when the server has rolled it back because another one was in its way. */
export async function untilNoConflict<T>(transact: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await transact();
    } catch (error) {
      if (!isConflict(error) || tries >= MOST_TRIES) throw error;
    }
  }
}

/** A connection that breaks between two statements says so to nobody who waits: the next statement is refused. */
function hearErrors(client: PoolClient): void {
  if (!client.listeners('error').includes(ignore)) client.on('error', ignore);
}

const ignore = (): void => undefined;

async function withClient<T>(pool: Pool, use: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let isWhole = true;
  try {
    return await use(client);
  } catch (error) {
    isWhole = await rollBack(client, error);
    throw error;
  } finally {
    client.release(!isWhole);
  }
}

/**
 * After a refusal of ours, or what the server says of a statement. Of a connection that failed nobody knows whether it answers at all.
 * @returns whether the connection can be used again.
 */
export async function rollBack(client: PoolClient, error: unknown): Promise<boolean> {
  if (!PilotageError.is(error) && stateOf(error) === undefined) return false;
  return client.query('ROLLBACK').then(
    () => true,
    () => false,
  );
}

const MOST_TEXTS = 500;

/** All numbers of ours are smaller than 2^53. */
const TYPES = {
  getTypeParser: (type: number) => {
    if (type === INT8 || type === NUMERIC) return Number;
    if (type === BYTES) return (text: string) => Buffer.from(text.slice(2), 'hex');
    if (type === BOOL) return (text: string) => text === 't';
    if (type === INT2 || type === INT4) return Number;
    return (text: string) => text;
  },
} as unknown as QueryConfig['types'];
const BOOL = 16;
const BYTES = 17;
const INT2 = 21;
const INT4 = 23;
