/** What the runs of the cluster measures do. Their query says it: `notes 10`, `ledger 30`, `ask`, `event`, `sleep`, `due <time>`. */
import { setTimeout as passed } from 'node:timers/promises';
import type { Pool } from 'pg';
import { createRuntime, type Identity, local, type Runtime, type Tool, type ToolContext, tool } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { PlannerFunction } from '#pilotage/planner';
import type { Reconciled } from '#pilotage/tools';

/** What a process has to tell. Times are of the clock that all processes of this machine have in common. */
export interface Heard {
  /** The planner was asked for the next step of a run that has done so many. */
  planned?(run: string, count: number): void;
  /** Code of the run is carried out: its planner, a tool, or what looks whether a call has happened. */
  went?(run: string): void;
  /** A timer went off so late. Milliseconds. */
  lag?(ms: number): void;
  claimed?(run: string): void;
  letGo?(run: string, status: string): void;
}

export interface Made {
  readonly journal: Journal;
  readonly slots: number;
  readonly leaseMs?: number;
  /** Where the ledger is. */
  readonly pool?: Pool;
  readonly heard?: Heard;
}

/** Milliseconds of the monotonic clock of the machine. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Of the whole process. */
export function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** What was really done, whoever has done it and whatever the journal says. */
export const LEDGER: string = `
  CREATE TABLE ledger (
    run text, step int, kind text, pid int,
    at float8 NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000
  );
  CREATE INDEX ledger_run ON ledger (run, step)`;
const WRITE = 'INSERT INTO ledger (run, step, kind, pid) VALUES ($1, $2, $3, $4)';
const WROTE = 'SELECT 1 FROM ledger WHERE run = $1 AND step = $2';
/** After its effect a call takes so long until it ends. */
const AFTER_MS = 15;
const NEVER_MS = 365 * 86_400_000;

export function clusterRuntime({ journal, slots, leaseMs, pool, heard = {} }: Made): Runtime {
  return createRuntime({
    planner: { name: 'cluster', next: plannerOf(heard) },
    tools: toolsOf(pool, heard),
    journal,
    maxLiveRuns: slots,
    maxLiveRunsPerTenant: slots,
    ...(leaseMs === undefined ? {} : { leaseMs }),
    onRun: (news) => (news.type === 'claimed' ? heard.claimed?.(news.run) : heard.letGo?.(news.run, news.status)),
    onFault: (error) => console.error(`A worker, ${process.pid}: ${String(error)}`),
  });
}

function plannerOf(heard: Heard): PlannerFunction {
  return ({ identity: { run }, query, trajectory: { count } }) => {
    heard.planned?.(run, count);
    heard.went?.(run);
    const [kind = '', value = ''] = String(query).split(' ');
    const isCounted = kind === 'notes' || kind === 'ledger';
    if (count >= (isCounted ? Number(value) : 1)) return { kind: 'finish', reason: 'goal', payload: 'Done.' };
    const name = kind === 'ledger' && count % 2 === 1 ? 'ledger_once' : kind;
    const args = isCounted ? { id: count, text: `step ${count}` } : kind === 'due' ? { until: Number(value) } : {};
    return { kind: 'call_tool', tool: name, args };
  };
}

const NOTE = {
  type: 'object',
  properties: { id: { type: 'integer' }, text: { type: 'string' } },
  required: ['id', 'text'],
} as const;
const ANY = { type: 'object' } as const;

function toolsOf(pool: Pool | undefined, heard: Heard): Tool[] {
  const write = async (kind: string, id: unknown, { identity: { run } }: ToolContext): Promise<{ ok: boolean }> => {
    heard.went?.(run);
    await pool?.query({ name: 'write', text: WRITE, values: [run, id, kind, process.pid] });
    await passed(AFTER_MS);
    return { ok: true };
  };
  const look = async (id: unknown, { identity: { run } }: ToolContext): Promise<Reconciled> => {
    heard.went?.(run);
    const found = await pool?.query(WROTE, [run, id]);
    return found?.rowCount === 0 ? { status: 'not_done' } : { status: 'done', value: { ok: true } };
  };
  const waiting = { description: 'w', effect: 'pure', inputSchema: ANY } as const;
  return [
    tool({
      name: 'notes',
      description: 'Keeps a note',
      effect: 'pure',
      inputSchema: NOTE,
      execute: ({ id }) => ({ ok: true, id: Number(id) }),
    }),
    tool({
      name: 'ledger',
      description: 'Writes into the ledger',
      effect: 'keyed',
      inputSchema: NOTE,
      execute: ({ id }, context) => write('keyed', id, context),
    }),
    tool({
      name: 'ledger_once',
      description: 'Writes into the ledger once',
      effect: 'once',
      inputSchema: NOTE,
      execute: ({ id }, context) => write('once', id, context),
      reconcile: ({ id }, context) => look(id, context),
    }),
    tool({ ...waiting, name: 'ask', execute: (_, context) => context.ask({ question: 'Well?' }) }),
    tool({ ...waiting, name: 'event', execute: (_, context) => context.event({ key: context.identity.run }) }),
    tool({ ...waiting, name: 'sleep', execute: (_, context) => context.sleep({ forMs: NEVER_MS }) }),
    tool({
      ...waiting,
      name: 'due',
      execute: async ({ until }, context) => {
        await context.sleep({ until: Number(until) });
        heard.lag?.(Date.now() - Number(until));
      },
    }),
  ];
}

/** How a run of these measures is named. */
export const identityOf = (run: string): Identity => local('bench', { run, session: run });
