/**
 * `node cluster-child.ts <JSON>`: a worker. Its parent says `open` (a runtime that works), `close`, or `use` (what it uses while nothing happens),
 * and hears when that is done, and of what was asked for in `tells`.
 */
import { setTimeout as passed } from 'node:timers/promises';
import pg from 'pg';
import { postgresJournal } from '#journal/postgres';
import type { Runtime } from '#pilotage';
import { clusterRuntime, cpuMsSince, type Heard, machineMs } from './cluster-agent.ts';
import { heapBytes } from './measure.ts';

export interface ChildOptions {
  readonly url: string;
  readonly schema: string;
  readonly slots: number;
  readonly leaseMs?: number;
  readonly tells: readonly (keyof Heard)[];
}

export type Said =
  | { readonly did: string; readonly heapBytes?: number; readonly cpuShare?: number; readonly cpuMs?: number }
  | { readonly tells: keyof Heard; readonly run?: string; readonly value?: string | number; readonly atMs: number };

const IDLE_MS = Number(process.env['CLUSTER_IDLE_MS'] ?? 5_000);

const options = JSON.parse(process.argv[2] ?? '') as ChildOptions;
const say = (said: Said): void => void process.send?.(said);
const journal = postgresJournal({ url: options.url }, { schema: options.schema });
const pool = new pg.Pool({ connectionString: options.url, max: options.slots });
let runtime: Runtime | undefined;
let cpuBefore = process.cpuUsage();

process.on('message', (what) => void carryOut(String(what)));
process.on('disconnect', () => process.exit());
// The tables are there, and a connection.
await journal.nextDue(['none']);
say({ did: 'start' });

async function carryOut(what: string): Promise<void> {
  switch (what) {
    case 'open':
      cpuBefore = process.cpuUsage();
      runtime = clusterRuntime({ ...options, journal, pool, heard: heardHere() });
      runtime.work();
      say({ did: what });
      break;
    case 'close':
      await runtime?.close({ graceMs: 1_000 });
      say({ did: what, cpuMs: cpuMsSince(cpuBefore) });
      break;
    case 'use':
      say({ did: what, ...(await used()) });
      break;
  }
}

/** Of each run that was taken up, its code is told of once. */
function heardHere(): Heard {
  const gone = new Set<string>();
  const tell = (tells: keyof Heard, run?: string, value?: string | number): void => {
    if (!options.tells.includes(tells)) return;
    say({ tells, atMs: machineMs(), ...(run === undefined ? {} : { run }), ...(value === undefined ? {} : { value }) });
  };
  return {
    claimed: (run) => {
      gone.delete(run);
      tell('claimed', run);
    },
    went: (run) => {
      if (gone.has(run)) return;
      gone.add(run);
      tell('went', run);
    },
    planned: (run, count) => tell('planned', run, count),
    letGo: (run, status) => tell('letGo', run, status),
    lag: (ms) => tell('lag', undefined, ms),
  };
}

/** While nothing happens. */
async function used(): Promise<{ readonly heapBytes: number; readonly cpuShare: number }> {
  await passed(2_000);
  heapBytes();
  const before = process.cpuUsage();
  await passed(IDLE_MS);
  const cpuShare = cpuMsSince(before) / IDLE_MS;
  return { heapBytes: heapBytes(), cpuShare };
}
