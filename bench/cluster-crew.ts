/** The parent's side of the cluster measures: the server, workers in processes of their own, and runs that are put in for them. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { postgresJournal } from '#journal/postgres';
import type { Append, Journal, NewRun } from '#pilotage/journal';
import { PostgresServer } from '../test/kit/postgres.ts';
import { clusterRuntime, identityOf, LEDGER } from './cluster-agent.ts';
import type { ChildOptions, Said } from './cluster-child.ts';

/** For tries: what is counted is made so much smaller (`CLUSTER_SCALE=0.02`), and only some parts are measured (`CLUSTER_PARTS=append,claim`). */
const SCALE = Number(process.env['CLUSTER_SCALE'] ?? 1);
const PARTS = process.env['CLUSTER_PARTS']?.split(',');

export function scaled(count: number, least = 1): number {
  return Math.max(least, Math.round(count * SCALE));
}

export function isAsked(part: string): boolean {
  return PARTS === undefined || PARTS.includes(part);
}

export interface Place {
  readonly url: string;
  readonly pool: pg.Pool;
}

/** A server of its own, with the settings that Postgres comes with: each commit reaches the disk. */
export async function withServer<T>(work: (place: Place) => Promise<T>): Promise<T> {
  const server = await PostgresServer.start();
  const pool = new pg.Pool({ connectionString: server.url, max: 20 });
  pool.on('error', () => undefined);
  try {
    await pool.query(LEDGER);
    return await work({ url: server.url, pool });
  } finally {
    await pool.end();
    await server.remove();
  }
}

export async function withJournal<T>(
  { url }: Place,
  schema: string,
  work: (journal: Journal) => Promise<T>,
): Promise<T> {
  const journal = postgresJournal({ url }, { schema });
  try {
    return await work(journal);
  } finally {
    await journal.close();
  }
}

type Told = Extract<Said, { readonly tells: string }>;
type Did = Extract<Said, { readonly did: string }>;

export class Worker {
  readonly #child: ChildProcess;
  readonly #hears: (told: Told) => void;
  readonly #waiting = new Map<string, { resolve: (did: Did) => void; reject: (error: unknown) => void }>();
  readonly exit: Promise<void>;

  private constructor(child: ChildProcess, hears: (told: Told) => void) {
    this.#child = child;
    this.#hears = hears;
    child.on('message', (said: Said) => {
      if ('did' in said) this.#waiting.get(said.did)?.resolve(said);
      else this.#hears(said);
    });
    this.exit = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        for (const { reject } of this.#waiting.values()) reject(new Error(`A worker ended with ${code ?? signal}.`));
        resolve();
      });
    });
  }

  /** @param isElsewhere it believes that it is on a machine of its own. */
  static async start(
    options: ChildOptions,
    hears: (told: Told) => void = () => {},
    { file = './cluster-child.ts', isElsewhere = false }: { file?: string; isElsewhere?: boolean } = {},
  ): Promise<Worker> {
    const host = new URL('./cluster-host.ts', import.meta.url).href;
    const folder = process.env['CLUSTER_PROF'];
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(options)], {
      execArgv: [
        ...(isElsewhere ? ['--import', host] : []),
        ...(folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`]),
      ],
    });
    const worker = new Worker(child, hears);
    await worker.#done('start');
    return worker;
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  do(what: 'open' | 'close' | 'use'): Promise<Did> {
    const done = this.#done(what);
    this.#child.send(what);
    return done;
  }

  #done(what: string): Promise<Did> {
    return new Promise((resolve, reject) => this.#waiting.set(what, { resolve, reject }));
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exit;
  }

  async end(): Promise<void> {
    this.#waiting.clear();
    if (this.#child.connected) this.#child.disconnect();
    await this.exit;
  }
}

export interface Recorded {
  readonly run: NewRun;
  readonly appends: readonly Append[];
  /** From the first time that the planner was asked until the last one. */
  readonly stepsMs: number;
  /** The appends of that time. */
  readonly ofSteps: readonly Append[];
}

/** Carries out a run on a journal, until it has ended or waits, and keeps what the journal was asked for. */
export async function recordRun(journal: Journal, query: string, run: string): Promise<Recorded> {
  let stored: NewRun | undefined;
  const appends: Append[] = [];
  const askedAt: number[] = [];
  const seen: number[] = [];
  const spy = new Proxy(journal, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name === 'create') {
        return (given: NewRun) => {
          stored = given;
          return target.create(given);
        };
      }
      if (name === 'append') {
        return (given: Append) => {
          appends.push(given);
          return target.append(given);
        };
      }
      return value.bind(target);
    },
  });
  const letGo = Promise.withResolvers<void>();
  const runtime = clusterRuntime({
    journal: spy,
    slots: 1,
    heard: {
      letGo: () => letGo.resolve(),
      planned: () => {
        askedAt.push(performance.now());
        seen.push(appends.length);
      },
    },
  });
  await runtime.start(query, {
    identity: identityOf(run),
    conversation: false,
    limits: { steps: 1_000 },
  });
  await letGo.promise;
  await runtime.close();
  if (stored === undefined) throw new Error('The run was not stored.');
  return {
    run: stored,
    appends,
    stepsMs: (askedAt.at(-1) ?? Number.NaN) - (askedAt[0] ?? Number.NaN),
    ofSteps: appends.slice(seen[0], seen.at(-1)),
  };
}

const AT_ONCE = 50;

/** Puts in runs like the recorded one, which nobody drives yet. */
export async function putRuns(journal: Journal, { run }: Recorded, names: readonly string[]): Promise<void> {
  const { claim: _, ...free } = run;
  const text = JSON.stringify(free);
  const put = (name: string) =>
    journal.create(JSON.parse(text.replaceAll(`"${run.identity.run}"`, JSON.stringify(name))) as NewRun);
  for (let from = 0; from < names.length; from += AT_ONCE)
    await Promise.all(names.slice(from, from + AT_ONCE).map(put));
}

export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

export function at(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
