/**
 * A real Restate server on loopback. Its binary is too large to be a dependency of the package (216 MB): the first test that wants it fetches it from
 * the registry into a cache folder. `PILOTAGE_TEST_RESTATE` names a binary in its place, or says `off`.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { projectDir } from './project.ts';

const VERSION = '1.7.12';
const FETCH_MS = 100_000;
/** Restate needs two cores, and memory for its store, which is large unless it is told otherwise. */
const SETTINGS = {
  RESTATE_DISABLE_TELEMETRY: 'true',
  RESTATE_BIND_IP: '127.0.0.1',
  RESTATE_LISTEN_MODE: 'tcp',
  RESTATE_DEFAULT_NUM_PARTITIONS: '2',
  RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '128MiB',
  RESTATE_ADMIN__DISABLE_WEB_UI: 'true',
};

let found: Promise<string | undefined> | undefined;

/** The binary; `undefined` where it cannot be had, which is said once. */
export function restateBinary(): Promise<string | undefined> {
  found ??= findBinary().catch((error: unknown) => {
    const words = error instanceof Error ? error.message.split('\n')[0] : String(error);
    process.stderr.write(`Tests with a Restate server are skipped: ${words}\n`);
    return undefined;
  });
  return found;
}

async function findBinary(): Promise<string> {
  const given = process.env['PILOTAGE_TEST_RESTATE'];
  if (given === 'off') throw new Error('PILOTAGE_TEST_RESTATE is off.');
  if (given !== undefined) return given;
  const name = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  const cache = join(projectDir, `node_modules/.cache/restate-server-${VERSION}`);
  const binary = join(cache, 'node_modules', name, 'bin/restate-server');
  if (existsSync(binary)) return binary;
  // Another process of the tests may fetch it, too: whoever sees the binary sees all of it.
  mkdirSync(dirname(cache), { recursive: true });
  const own = mkdtempSync(`${cache}-`);
  writeFileSync(join(own, 'package.json'), '{ "private": true }');
  const flags = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${VERSION}`];
  await promisify(execFile)('npm', flags, { cwd: own, timeout: FETCH_MS });
  try {
    renameSync(own, cache);
  } catch {
    rmSync(own, { recursive: true, force: true });
  }
  return binary;
}

interface Ports {
  readonly ingress: number;
  readonly admin: number;
  readonly node: number;
}

export class RestateServer {
  readonly #binary: string;
  readonly #folder: string;
  readonly #ports: Ports;
  #process: ReturnType<typeof spawn> | undefined;

  private constructor(binary: string, folder: string, ports: Ports) {
    this.#binary = binary;
    this.#folder = folder;
    this.#ports = ports;
  }

  static async start(binary: string): Promise<RestateServer> {
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-restate-'));
    const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
    const server = new RestateServer(binary, folder, { ingress, admin, node });
    await server.boot();
    return server;
  }

  get ingress(): string {
    return `http://127.0.0.1:${this.#ports.ingress}`;
  }

  get admin(): string {
    return `http://127.0.0.1:${this.#ports.admin}`;
  }

  /** What it has said. */
  get log(): string {
    return readFileSync(join(this.#folder, 'log'), 'utf8');
  }

  /** Starts the server on the data that it has. */
  async boot(): Promise<void> {
    const { ingress, admin, node } = this.#ports;
    const log = openSync(join(this.#folder, 'log'), 'a');
    const server = spawn(this.#binary, ['--no-logo'], {
      cwd: this.#folder,
      stdio: ['ignore', log, log],
      env: {
        ...SETTINGS,
        RESTATE_BASE_DIR: join(this.#folder, 'data'),
        RESTATE_BIND_PORT: String(node),
        RESTATE_INGRESS__BIND_PORT: String(ingress),
        RESTATE_ADMIN__BIND_PORT: String(admin),
      },
    });
    this.#process = server;
    while (!(await answers(`${this.admin}/health`)) || !(await answers(`${this.ingress}/restate/health`))) {
      if (server.exitCode !== null) throw new Error(`Restate did not start:\n${this.log}`);
      await sleep(50);
    }
  }

  /** The server is gone at once. */
  async kill(): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      server.once('exit', () => resolve());
      server.kill('SIGKILL');
    });
  }

  /** It forgets all that it had. */
  forget(): void {
    rmSync(join(this.#folder, 'data'), { recursive: true, force: true });
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
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
