/** Restate and workers that die, freeze and change, with the runs on Postgres: whatever goes, the runs end, and nothing is recorded twice. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RestateDriver, restateDriver } from '#engine/restate';
import { createRuntime, local, type Runtime } from '#pilotage';
import { builtFile } from '../kit/built.ts';
import { type Born, bear } from '../kit/lives.ts';
import { PostgresServer } from '../kit/postgres.ts';
import { freePort, RestateServer, restateBinary } from '../kit/restate.ts';

const binary = await restateBinary();
const RUNS = 12;
const STEPS = 6;
const QUERY = Array.from({ length: STEPS }, () => 'step').join(' ');

interface Worker extends Born {
  readonly lines: string[];
}

describe.skipIf(binary === undefined)('under Restate', () => {
  let [postgres, restate, runtime, client, folder, port]: [
    PostgresServer,
    RestateServer,
    Runtime,
    RestateDriver,
    string,
    number,
  ] = [] as never;
  const workers: Worker[] = [];

  beforeAll(async () => {
    postgres = await PostgresServer.start(['fsync=off']);
  });
  afterAll(() => postgres.remove());

  beforeEach(async () => {
    restate = await RestateServer.start(binary as string);
    folder = mkdtempSync(join(tmpdir(), 'pilotage-under-restate-'));
    writeFileSync(join(folder, 'effects'), '');
    port = await freePort();
    client = restateDriver({ ingress: restate.ingress });
    runtime = createRuntime({
      planner: () => never(),
      journal: postgres.url,
      driver: client,
      onFault: () => undefined,
    });
  });
  afterEach(async () => {
    for (const { child } of workers.splice(0)) {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
    }
    await runtime.close();
    await restate.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  async function worker(version = '1', at = port): Promise<Worker> {
    const program = builtFile('test/engine/restate-child.ts');
    const args = [postgres.url, restate.ingress, restate.admin, String(at), version];
    const lines: string[] = [];
    const born = bear({ program, folder, args }, (line) => void lines.push(line));
    born.end.catch(() => undefined);
    const made = { ...born, lines };
    workers.push(made);
    await until(() => lines.includes('ready') || born.child.exitCode !== null);
    return made;
  }

  /** Starts runs that others carry out. */
  async function start(query: string, count = RUNS): Promise<string[]> {
    const runs = Array.from({ length: count }, () => crypto.randomUUID());
    await Promise.all(runs.map((run) => runtime.start(query, { identity: local(`session of ${run}`, { run }) })));
    return runs;
  }

  /** They end well, and each call has one outcome. */
  async function end(runs: readonly string[], steps: number): Promise<void> {
    for (const run of runs) {
      expect(await runtime.run(run).result()).toMatchObject({ status: 'finished' });
      expect((await runtime.run(run).trajectory()).steps.length).toBe(steps);
    }
  }

  /** What happened in the world, as often as it did. */
  const effects = (): string[] => readFileSync(join(folder, 'effects'), 'utf8').split('\n').slice(0, -1);
  const repeated = (): number => {
    const keys = effects().map((line) => line.split(' ')[1]);
    return keys.length - new Set(keys).size;
  };
  const letGo = ({ lines }: Worker): number => lines.filter((line) => line.startsWith('let_go')).length;
  /** How many calls of the tool have begun in this worker. */
  const begun = ({ lines }: Worker): number => lines.filter((line) => line.startsWith('begins')).length;

  it('its server is killed and comes back: nothing is done twice', async () => {
    const one = await worker();
    const runs = await start(`${QUERY} sleep ${QUERY}`);
    await until(() => begun(one) > RUNS);
    await restate.kill();
    await until(() => begun(one) > 2 * RUNS);
    await restate.boot();
    await end(runs, 2 * STEPS + 1);
    expect(effects().length).toBe(RUNS * 2 * STEPS);
    expect(repeated()).toBe(0);
  });

  it('a worker is killed: the other one goes on with its runs, and only what was under way may be done again', async () => {
    const [one, other] = [await worker(), await worker()];
    const runs = await start(QUERY);
    await until(() => begun(one) > STEPS || begun(other) > RUNS * (STEPS - 1));
    one.child.kill('SIGKILL');
    const underWay = await one.end.then(() => begun(one));
    const since = Date.now();
    await end(runs, STEPS);
    process.stderr.write(`the other one was done ${Date.now() - since} ms after the kill\n`);
    expect(new Set(effects().map((line) => line.split(' ')[1])).size).toBe(RUNS * STEPS);
    expect(repeated()).toBeLessThanOrEqual(Math.min(underWay, RUNS));
  });

  it('a worker is frozen: its runs go on elsewhere, and what it says when it thaws is refused', async () => {
    const [one, other] = [await worker(), await worker()];
    const runs = await start(QUERY);
    await until(() => begun(one) > STEPS || begun(other) > RUNS * (STEPS - 1));
    one.child.kill('SIGSTOP');
    await end(runs, STEPS);
    one.child.kill('SIGCONT');
    const [late] = await start('step', 1);
    await end([late as string], 1);
    await end(runs, STEPS);
    expect(new Set(effects().map((line) => line.split(' ')[1])).size).toBe(RUNS * STEPS + 1);
  });

  it('the code changes in the middle: another version is registered, and goes on with what waits', async () => {
    const old = await worker('1');
    const runs = await start('step event step');
    await until(() => letGo(old) >= RUNS);
    const next = await worker('2', await freePort());
    // The messages of both halves go to the version that was registered last.
    for (const run of runs.slice(0, RUNS / 2)) await runtime.signal(run);
    await end(runs.slice(0, RUNS / 2), 3);
    expect(begun(next)).toBeGreaterThan(0);
    old.child.stdin.write('close\n');
    expect(await old.end).toBe(false);
    const before = begun(next);
    for (const run of runs.slice(RUNS / 2)) await runtime.signal(run);
    await end(runs, 3);
    expect(begun(next) - before).toBe(RUNS / 2);
    expect(repeated()).toBe(0);
  });

  it('it is gone, with all that it had: those who work finish the runs, and go back to it when it is there again', async () => {
    const one = await worker();
    const runs = await start('step sleep step');
    await until(() => effects().length === RUNS);
    await restate.kill();
    const more = await start(QUERY);
    await end(runs, 3);
    await end(more, STEPS);
    expect(repeated()).toBe(0);
    expect(one.lines.filter((line) => line.startsWith('fault')).length).toBeGreaterThan(0);

    restate.forget();
    await restate.boot();
    const [last] = await start('step sleep step', 1);
    // The timer of the run is a message in Restate.
    await until(async () => (await scheduled()).includes(last as string));
    await end([last as string], 3);
    expect(repeated()).toBe(0);
  });

  async function scheduled(): Promise<string[]> {
    const query = "SELECT target_service_key FROM sys_invocation WHERE status = 'scheduled'";
    const headers = { accept: 'application/json', 'content-type': 'application/json' };
    const answer = await fetch(`${restate.admin}/query`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    const { rows = [] } = (await answer.json()) as { rows?: { target_service_key: string }[] };
    return rows.map(({ target_service_key: key }) => key);
  }
});

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(10);
}

function never(): never {
  throw new Error('This program carries out no runs.');
}
