/** Workers as processes of their own, and runs for them that nobody has begun. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRuntime, local } from '#pilotage';
import { loadConfig, readyConfig } from '#pilotage/config';
import { type Folder, makeFolder, type Started } from './command.ts';

/**
 * Runs of the query `hold` make a call that lasts until there is a file `go`, and says in `held.txt` that it has begun, and how it ended. Those of
 * any other query finish at once.
 */
const CONFIG = `
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';

const hold = {
  name: 'hold',
  description: 'Waits for a file.',
  inputSchema: { type: 'object' },
  effect: 'read',
  execute: async (_, { signal }) => {
    const say = (what) => appendFileSync(import.meta.dirname + '/held.txt', what + '\\n');
    say('begun');
    try {
      while (!existsSync(import.meta.dirname + '/go')) await after(10, undefined, { signal });
    } catch (error) {
      say('aborted');
      throw error;
    }
    return 'held';
  },
};
const planner = (name) => ({
  name,
  next: ({ query, trajectory: { count } }) =>
    query === 'hold' && count === 0
      ? { kind: 'call_tool', tool: 'hold', args: {} }
      : { kind: 'finish', reason: 'goal', payload: 'done' },
});

export default {
  agents: [
    { name: 'first', planner: planner('first'), tools: [hold] },
    { name: 'second', planner: planner('second'), tools: [] },
  ],
  leaseMs: 2_000,
};
`;

export function workFolder(): Folder {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  return folder;
}

/** Stores runs that are due now, and begins none. @returns their ids. */
export async function due(
  folder: Folder,
  journal: string,
  query: string,
  count: number = 1,
  agent: string = 'first',
): Promise<string[]> {
  const { runtime: options } = await readyConfig(await loadConfig(join(folder.path, 'pilotage.config.ts')));
  const runtime = createRuntime({ ...options, journal, goesOn: false });
  try {
    const runs: string[] = [];
    // The journal is made first, which may take a while.
    await runtime.list({ limit: 1 });
    while (runs.length < count) {
      // The runtime that starts a run begins what is due at once.
      const run = await runtime.start(query, { agent, identity: local('ana'), at: Date.now() + 1_000 });
      runs.push(run.id);
    }
    return runs;
  } finally {
    await runtime.close();
  }
}

export interface Fact {
  readonly fact: string;
  readonly run?: string;
  readonly status?: string;
  readonly port?: number;
  readonly [name: string]: unknown;
}

export interface Working extends Started {
  facts(fact?: string): Fact[];
  /** The first that there is, or comes. */
  first(fact: string): Promise<Fact>;
  /** Until there are so many. */
  many(fact: string, count: number): Promise<Fact[]>;
  get(path: string): Promise<{ readonly status: number; readonly type: string | null; readonly text: string }>;
}

/** Looks now and then: another process makes it true. */
export async function untilTrue(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** What the tool has written. */
export function heldIn({ path }: Folder): string {
  const file = join(path, 'held.txt');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** Whatever it says must be facts. */
export function startWorker(folder: Folder, journal: string, ...args: string[]): Working {
  const started = folder.start(['work', '--journal', journal, '--port', '0', ...args]);
  let said = '';
  started.child.stderr?.on('data', (text: string) => {
    said += text;
  });
  const facts = (fact?: string): Fact[] => {
    const lines = said.split('\n').slice(0, -1);
    const all = lines.map((line) => JSON.parse(line) as Fact);
    return fact === undefined ? all : all.filter((each) => each.fact === fact);
  };
  const many = async (fact: string, count: number): Promise<Fact[]> => {
    await started.untilOutput(new RegExp(`(?:"fact":"${fact}"[^]*){${count}}`));
    return facts(fact);
  };
  const first = async (fact: string): Promise<Fact> => (await many(fact, 1))[0] as Fact;
  const get: Working['get'] = async (path) => {
    const { port } = await first('ready');
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  };
  return { ...started, facts, many, first, get };
}

/** The samples of an exposition in the text format, by their names with labels. Every line must have the form of one. */
export function samplesIn(text: string): ReadonlyMap<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split('\n').slice(0, -1)) {
    if (/^# (?:HELP [a-z_]+ .+|TYPE [a-z_]+ (?:gauge|counter))$/.test(line)) continue;
    const [, name = '', value] = /^([a-z_]+(?:\{[a-z_]+="[a-z_]+"\})?) (\d+(?:\.\d+)?(?:e-\d+)?)$/.exec(line) ?? [];
    if (value === undefined) throw new Error(`This is no sample: ${line}`);
    samples.set(name, Number(value));
  }
  return samples;
}
