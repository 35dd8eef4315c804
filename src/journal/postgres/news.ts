/**
 * News of runs and sessions between processes: those who write notify, those who watch listen. A notification may be lost (a connection that
 * breaks, a process that dies between its commit and its word, a pooler that gives each transaction another connection), so that whoever
 * watches looks by itself, too: often when nothing can be heard, and seldom when it can.
 */
import { createHash } from 'node:crypto';
import type { Client } from 'pg';
import { RESERVED_PART, type Scope, type StoreWrite } from '#core';
import { DUE, isRun, itemNames, itemsKey, passingKey, READERS, sessionKey, Watchers } from '../watchers.ts';
import type { Database, Sql } from './database.ts';
import { IS_READY } from './run-rows.ts';

/** News within this time go together: each notification is a commit. */
const GATHER_MS = 5;
/** The same where nobody waits but who looks on: runs write much. */
const PROGRESS_MS = 50;
/** A notification has at most 8,000 bytes. */
const MOST_BYTES = 7_000;
/** In the place of more names than fit. */
const ALL = '*';
const LISTENING_LOOK_MS = 2_000;
const RECONNECT_MS = 1_000;
/** So long a connection has until it hears its own word. */
const ECHO_MS = 3_000;
const ECHO = '?';
/** Whoever hears these learns nothing of anybody. */
const COMMON: ReadonlySet<string> = new Set([DUE, READERS, ALL]);
/** Nothing waits for the disk: a word that is lost with the server is lost with all who listened. */
const NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";
const LOOK_AT_RUNS = `
  SELECT runs.id, concat_ws(':', runs.head, runs.signals, runs.status, runs.fence, runs.waits,
    (SELECT concat_ws('/', sum(rows), count(*) FILTER (WHERE closed)) FROM {streams} WHERE run = runs.key)) AS mark
  FROM {runs} AS runs WHERE id = ANY($1::text[])`;
const LOOK_AT_DUE = `SELECT FROM {runs} WHERE ${IS_READY} LIMIT 1`;
const LOOK_AT_SESSIONS = `
  SELECT wanted.name AS id, concat_ws(':', max(turn), count(*) FILTER (WHERE waits > 0), max(key)) AS mark
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS wanted (name, tenant, "user", session)
  JOIN {runs} AS runs ON runs.tenant = wanted.tenant AND runs."user" = wanted."user" AND runs.session = wanted.session AND turn IS NOT NULL
  GROUP BY wanted.name`;

export interface NewsOptions {
  readonly watchIntervalMs: number;
  /** False: connections change from transaction to transaction, and nothing is heard on them. What there is to hear is told all the same. */
  readonly listens: boolean;
  /** True: who listens in the place of another tenant learns no names. Channels know no policies. */
  readonly hidesNames: boolean;
}

export class PostgresNews {
  readonly #database: Database;
  readonly #options: NewsOptions;
  readonly #channel: string;
  readonly #sender = crypto.randomUUID();
  readonly #watchers = new Watchers();
  readonly #sessions = new Map<string, Scope>();
  /** The names under which somebody has watched what passes in a run. */
  readonly #passing = new Set<string>();
  /** Where names are hidden: the digests of those that are watched. */
  readonly #hidden = new Map<string, string>();
  readonly #marks = new Map<string, string>();
  #gathered = new Set<string>();
  #telling: NodeJS.Timeout | undefined;
  /** By the monotonic clock of the machine. */
  #tellsAt = 0;
  #looking: NodeJS.Timeout | undefined;
  #isLooking = false;
  #listener: Client | undefined;
  #isConnecting = false;
  #hears = false;
  #closed = false;

  constructor(database: Database, options: NewsOptions) {
    this.#database = database;
    this.#options = options;
    const digest = createHash('sha256').update(database.schema).digest('hex');
    this.#channel = `pilotage_${digest.slice(0, 16)}`;
  }

  watch(run: string, wake: () => void): () => void {
    this.#hide(run);
    return this.#watching(this.#watchers.add(run, wake));
  }

  watchSession(scope: Scope, wake: () => void): () => void {
    this.#sessions.set(sessionKey(scope), scope);
    this.#hide(sessionKey(scope));
    return this.#watching(this.#watchers.addSession(scope, wake));
  }

  watchDue(wake: () => void): () => void {
    return this.#watching(this.#watchers.addDue(wake));
  }

  watchRuns(wake: (run?: string) => void): () => void {
    return this.#watching(this.#watchers.addRuns(wake));
  }

  watchItems(root: string, wake: () => void): () => void {
    this.#hide(itemsKey(root));
    return this.#watching(this.#watchers.add(itemsKey(root), wake));
  }

  watchReaders(wake: () => void): () => void {
    return this.#watching(this.#watchers.add(READERS, wake));
  }

  watchPassing(run: string, wake: () => void): () => void {
    this.#passing.add(passingKey(run));
    this.#hide(passingKey(run));
    return this.#watching(this.#watchers.add(passingKey(run), wake));
  }

  #watching(stop: () => void): () => void {
    if (this.#watchers.size > 0) {
      this.#look(this.#options.watchIntervalMs);
      void this.#listen();
    }
    return () => {
      stop();
      if (this.#watchers.size === 0) this.#stopListening();
    };
  }

  /** These have news: those who watch them here hear it at once, and others soon. */
  tell(...runs: readonly string[]): void {
    for (const run of runs) this.#tellName(run);
  }

  /** The run has got on. */
  tellProgress(run: string): void {
    this.#watchers.wake(run);
    this.#gather(run, PROGRESS_MS);
  }

  /** Somebody has begun to read a run, or reads on. */
  tellReaders(): void {
    this.#tellName(READERS);
  }

  /** Readers of the run are told something that is not recorded. */
  tellPassing(run: string): void {
    this.#tellName(passingKey(run));
  }

  /** Items were written. Only those of the runtime's own parts are watched. */
  tellItems(writes: readonly Pick<StoreWrite, 'namespace'>[]): void {
    const watched = writes.filter(({ namespace: [root] }) => root?.startsWith(RESERVED_PART));
    for (const name of itemNames(watched)) this.#tellName(name);
  }

  tellSession(scope: Scope): void {
    this.#tellName(sessionKey(scope));
  }

  /** Runs may be due: other processes look for them, and this one knows. */
  tellDue(): void {
    this.#gather(DUE);
  }

  /** Everybody looks. */
  tellAll(): void {
    this.#watchers.wakeAll();
    this.#gather(ALL);
  }

  #tellName(name: string): void {
    this.#watchers.wake(name);
    this.#gather(name);
  }

  #gather(name: string, withinMs: number = GATHER_MS): void {
    if (this.#closed) return;
    // Also where nothing is listened for: others may listen who reach the server by another way.
    this.#gathered.add(this.#toldAs(name));
    const at = performance.now() + withinMs;
    if (this.#telling !== undefined && this.#tellsAt <= at) return;
    clearTimeout(this.#telling);
    this.#tellsAt = at;
    this.#telling = setTimeout(() => void this.#notify(), withinMs).unref();
  }

  async #notify(): Promise<void> {
    this.#telling = undefined;
    const names = [...this.#gathered];
    this.#gathered = new Set();
    const whole = JSON.stringify([this.#sender, ...names]);
    const payload = Buffer.byteLength(whole) > MOST_BYTES ? JSON.stringify([this.#sender, ALL]) : whole;
    // Whoever is not told looks by itself.
    await this.#database.read((sql) => sql.run(NOTIFY, this.#channel, payload)).catch(() => undefined);
  }

  #heard(payload: string | undefined): void {
    const [sender, ...names] = namesIn(payload);
    if (sender === this.#sender) {
      // Those who watch here have heard it when it was told.
      if (names[0] === ECHO) this.#hears = true;
    } else if (names.includes(ALL)) this.#watchers.wakeAll();
    else for (const name of names) this.#hearName(String(name));
  }

  #hearName(told: string): void {
    const name = this.#hidden.get(told);
    if (name !== undefined) this.#watchers.wake(name);
    // It may be that of any run.
    else if (this.#options.hidesNames && !COMMON.has(told)) this.#watchers.wakeRuns();
    else this.#watchers.wake(told);
  }

  #toldAs(name: string): string {
    return this.#options.hidesNames && !COMMON.has(name) ? digestOf(name) : name;
  }

  #hide(name: string): void {
    if (this.#options.hidesNames) this.#hidden.set(digestOf(name), name);
  }

  async #listen(): Promise<void> {
    if (!this.#options.listens || this.#listener !== undefined || this.#isConnecting || this.#closed) return;
    this.#isConnecting = true;
    let made: Client | undefined;
    try {
      const client = await this.#database.ownClient();
      made = client;
      const lost = (): void => {
        if (this.#listener !== client) return;
        this.#listener = undefined;
        this.#hears = false;
        this.#watchers.wakeAll();
        setTimeout(() => this.#watchers.size > 0 && void this.#listen(), RECONNECT_MS).unref();
      };
      client.on('error', lost);
      client.on('end', lost);
      client.on('notification', ({ payload }) => this.#heard(payload));
      this.#listener = client;
      await client.query(`LISTEN ${this.#channel}`);
      // By another connection: a pooler may give this one the same connection twice, on which it would hear itself, and nobody else later.
      const echo = JSON.stringify([this.#sender, ECHO]);
      await this.#database.read((sql) => sql.run(NOTIFY, this.#channel, echo));
      // Only now it does not keep the process alive: a connection that is being made shall be ended.
      (client as unknown as { unref(): void }).unref();
      if (this.#closed || this.#watchers.size === 0) this.#stopListening();
      else setTimeout(() => this.#warnIfDeaf(client), ECHO_MS).unref();
    } catch {
      this.#listener = undefined;
      // A standby takes connections, and hears nothing.
      void made?.end().catch(() => undefined);
    } finally {
      this.#isConnecting = false;
    }
  }

  #warnIfDeaf(client: Client): void {
    if (this.#hears || this.#listener !== client) return;
    process.emitWarning(
      'The journal on Postgres hears no notifications: a pooler that gives each transaction another connection stands between. Other processes are noticed by looking. Put ?transactionPooler=true behind the URL, or give { transactionPooler: true }.',
    );
  }

  #look(delayMs: number): void {
    if (this.#looking !== undefined || this.#closed) return;
    const look = async (): Promise<void> => {
      this.#looking = undefined;
      if (this.#closed || this.#watchers.size === 0) return;
      if (!this.#isLooking) await this.#lookOnce();
      this.#look(this.#hears ? LISTENING_LOOK_MS : this.#options.watchIntervalMs);
      void this.#listen();
    };
    this.#looking = setTimeout(() => void look(), delayMs).unref();
  }

  async #lookOnce(): Promise<void> {
    this.#isLooking = true;
    try {
      for (const name of this.#sessions.keys()) if (!this.#watchers.has(name)) this.#sessions.delete(name);
      for (const [digest, name] of this.#hidden) if (!this.#watchers.has(name)) this.#hidden.delete(digest);
      this.#wakeUnheard();
      const runs = this.#watchers.names.filter(isRun);
      const sessions = [...this.#sessions];
      const found = await this.#database.read(async (sql) => {
        await this.#lookForDue(sql);
        const ofRuns = runs.length === 0 ? [] : await sql.rows<Mark>(LOOK_AT_RUNS, runs);
        if (sessions.length === 0) return ofRuns;
        const columns = [
          sessions.map(([name]) => name),
          sessions.map(([, { tenant }]) => tenant),
          sessions.map(([, { user }]) => user),
          sessions.map(([, { session }]) => session),
        ];
        return [...ofRuns, ...(await sql.rows<Mark>(LOOK_AT_SESSIONS, ...columns))];
      });
      const before = new Map(this.#marks);
      this.#marks.clear();
      for (const { id, mark } of found) {
        this.#marks.set(id, mark);
        if (before.get(id) !== mark) this.#watchers.wake(id);
      }
    } catch {
      // A reader that is woken reads the journal, and gets the error where it can be handled.
      this.#watchers.wakeAll();
    } finally {
      this.#isLooking = false;
    }
  }

  /** A run that is ready for a process has no mark that changes: where that is not heard of, who carries out runs looks as long as there is one. */
  async #lookForDue(sql: Sql): Promise<void> {
    if (this.#hears || !this.#watchers.has(DUE)) return;
    if ((await sql.row(LOOK_AT_DUE)) !== undefined) this.#watchers.wake(DUE);
  }

  /** What passes leaves no mark on its run, and neither do items: where they are not heard of, whoever wants them looks. So does who wants all runs. */
  #wakeUnheard(): void {
    for (const name of this.#passing) {
      if (!this.#watchers.has(name)) this.#passing.delete(name);
      else if (!this.#hears) this.#watchers.wake(name);
    }
    if (this.#hears) return;
    this.#watchers.wake(READERS);
    this.#watchers.wakeRuns();
    for (const name of this.#watchers.names) if (name.startsWith(itemsKey(''))) this.#watchers.wake(name);
  }

  #stopListening(): void {
    clearTimeout(this.#looking);
    this.#looking = undefined;
    const client = this.#listener;
    this.#listener = undefined;
    this.#hears = false;
    this.#marks.clear();
    if (client !== undefined) void client.end().catch(() => undefined);
  }

  /** What was gathered is still told. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
    this.#stopListening();
    clearTimeout(this.#telling);
    if (this.#telling !== undefined) await this.#notify();
  }
}

function digestOf(name: string): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, 22);
}

/** Anybody may say something in a channel: what is not ours has everybody look. */
function namesIn(payload: string | undefined): readonly unknown[] {
  try {
    const names: unknown = JSON.parse(payload ?? '');
    return Array.isArray(names) ? names : ['', ALL];
  } catch {
    return ['', ALL];
  }
}

interface Mark {
  readonly id: string;
  readonly mark: string;
}
