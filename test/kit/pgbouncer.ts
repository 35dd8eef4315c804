/** A real PgBouncer on loopback, in transaction mode, before a Postgres server: the program `pgbouncer` of this machine. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from './postgres.ts';
import { ended, untilAnswers } from './server-process.ts';

/** It may not be run by root. */
const NOBODY = 65_534;
const asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
/** Debian has it where only root looks. */
const PATH = [process.env['PATH'], '/usr/sbin'].join(delimiter);

/** Its version, as a number (1.18 is 118); `undefined` where it is not installed, which is said once. */
export const pgbouncerVersion: number | undefined = findVersion();

/** Values of `max_prepared_statements`. Before 1.21 it did not know the setting, and kept nothing prepared. */
export const KEPT: readonly (number | undefined)[] =
  pgbouncerVersion !== undefined && pgbouncerVersion >= 121 ? [0, 200] : [undefined];

function findVersion(): number | undefined {
  try {
    const said = execFileSync('pgbouncer', ['--version'], { env: { PATH }, encoding: 'utf8' });
    const [, major, minor] = /PgBouncer (\d+)\.(\d+)/.exec(said) ?? [];
    return Number(major) * 100 + Number(minor);
  } catch {
    process.stderr.write(
      'Tests with PgBouncer are skipped: there is no program `pgbouncer` (Debian: apt-get install pgbouncer).\n',
    );
    return undefined;
  }
}

export class PgBouncer {
  readonly port: number;
  readonly #folder: string;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.port = port;
  }

  /** @param settings further ones, such as `['max_prepared_statements = 200']`. */
  static async start(serverPort: number, settings: readonly string[] = []): Promise<PgBouncer> {
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-pgbouncer-'));
    chmodSync(folder, 0o755);
    const bouncer = new PgBouncer(folder, await freePort());
    const lines = [
      '[databases]',
      `* = host=127.0.0.1 port=${serverPort} user=postgres`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1\nlisten_port = ${bouncer.port}\nunix_socket_dir =`,
      'auth_type = any\npool_mode = transaction\nmax_client_conn = 500',
      // Far fewer than clients: nobody gets the same connection for long.
      'default_pool_size = 4',
      ...settings,
    ];
    writeFileSync(bouncer.#config, `${lines.join('\n')}\n`);
    await bouncer.boot();
    return bouncer;
  }

  get #config(): string {
    return join(this.#folder, 'pgbouncer.ini');
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  async boot(): Promise<void> {
    const bouncer = spawn('pgbouncer', [this.#config], {
      ...asUser,
      env: { PATH },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process = bouncer;
    const complaint = await untilAnswers(bouncer, this.url);
    if (complaint !== undefined) throw new Error(`PgBouncer did not start:\n${complaint}`);
  }

  /** It is gone at once, with all connections on both sides. */
  async kill(): Promise<void> {
    const bouncer = this.#process;
    this.#process = undefined;
    await ended(bouncer, 'SIGKILL');
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
