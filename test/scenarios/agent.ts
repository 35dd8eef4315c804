/**
 * A process of its own: `node agent.ts <folder> <command>` does one thing to one run on the SQLite file of the folder, says
 * what it came to on standard output as one line of JSON, and ends. All that it knows is the store and this code.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Json, local, type Tool, tool } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';

export interface Command {
  /** `start` begins the run, `drive` goes on with it, the others answer a pause. Then its result is awaited. */
  readonly do: 'start' | 'drive' | 'approve' | 'reject' | 'settle';
  readonly run: string;
  /** For `start`: which plan. */
  readonly plan?: string;
  readonly token?: string;
  readonly args?: Json;
  /** For `settle`. */
  readonly happened?: boolean;
  /** A tool that, in this process, does what it does and then never comes back. */
  readonly hangs?: string;
}

/** One line of the effects file: something that happened in the world. */
export interface Effect {
  readonly tool: string;
  readonly run: string;
  readonly key: string;
  readonly attempt: number;
  readonly args: Json;
}

export function readEffects(folder: string): Effect[] {
  try {
    const lines = readFileSync(join(folder, 'effects.jsonl'), 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Effect);
  } catch {
    return [];
  }
}

/** The decisions of each plan, in order; after them the run finishes. */
const PLANS: Readonly<Record<string, readonly Decision[]>> = {
  once: [{ kind: 'call_tool', tool: 'append', args: { text: 'a line' } }],
  known: [{ kind: 'call_tool', tool: 'append_known', args: { text: 'a line' } }],
  again: [{ kind: 'call_tool', tool: 'append_again', args: { text: 'a line' } }],
  three: [
    {
      kind: 'call_parallel',
      branches: [
        { tool: 'book', args: { what: 'A' }, callId: 'A' },
        { tool: 'book', args: { what: 'B' }, callId: 'B' },
        { tool: 'pay', args: { what: 'C' }, callId: 'C' },
      ],
    },
  ],
  batch: [
    { kind: 'call_tool', tool: 'append', args: { text: 'before' } },
    {
      kind: 'call_parallel',
      branches: [
        { tool: 'append', args: { text: 'create' } },
        { tool: 'pay', args: { what: 'ask a human' } },
      ],
    },
  ],
  parent: [
    { kind: 'call_tool', tool: 'append', args: { text: 'parent 1' } },
    { kind: 'spawn_task', task: 'foreground', spec: { description: 'the child', query: 'child' } },
  ],
  child: [
    { kind: 'call_tool', tool: 'append', args: { text: 'child 1' } },
    { kind: 'call_tool', tool: 'pay', args: { what: 'child 2' } },
  ],
};

function planner({ query, trajectory }: RunView): Decision {
  const decision = PLANS[query]?.[trajectory.count];
  const told = trajectory.steps.flatMap(({ calls }) =>
    calls.map(({ outcome }) => (outcome.kind === 'value' ? outcome.value : outcome.kind)),
  );
  return decision ?? { kind: 'finish', reason: 'goal', payload: told };
}

const INPUT = { type: 'object' } as const;

function tools(folder: string, hangs: string | undefined): Tool[] {
  const effectful = (name: string, more: Partial<Tool>): Tool =>
    ({
      ...tool({
        name,
        description: name,
        inputSchema: INPUT,
        async execute(args, { identity, idempotencyKey: key, attempt }) {
          const effect: Effect = { tool: name, run: identity.run, key, attempt, args: args as Json };
          appendFileSync(join(folder, 'effects.jsonl'), `${JSON.stringify(effect)}\n`);
          if (hangs === name) {
            process.stdout.write('inside\n');
            await new Promise(() => {});
          }
          return `${name} ${Object.values(args).join(' ')}`;
        },
      }),
      ...more,
    }) as Tool;
  const reconcile: Tool['reconcile'] = (_, { idempotencyKey }) =>
    readEffects(folder).some(({ key }) => key === idempotencyKey)
      ? { status: 'done', value: 'looked up' }
      : { status: 'not_done' };
  return [
    effectful('append', { effect: 'once' }),
    effectful('append_known', { effect: 'once', reconcile }),
    effectful('append_again', { effect: 'keyed' }),
    effectful('book', { effect: 'once', needsApproval: true }),
    effectful('pay', { effect: 'once', needsApproval: true }),
  ];
}

async function obey(folder: string, command: Command): Promise<void> {
  const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
  const runtime = createRuntime({ planner, tools: tools(folder, command.hangs), journal, leaseMs: 1_000 });
  const run = runtime.run(command.run);
  const { token, args } = command;
  switch (command.do) {
    case 'start':
      await runtime.start(command.plan ?? '', { identity: local('ana', { run: command.run }) });
      break;
    case 'drive':
      await run.resume();
      break;
    case 'approve':
      await run.approve(token, args === undefined ? {} : { args });
      break;
    case 'reject':
      await run.reject(token);
      break;
    case 'settle':
      await run.settle(token, command.happened === true ? { happened: true, value: 'settled' } : { happened: false });
      break;
    default:
      command.do satisfies never;
  }
  process.stdout.write(`${JSON.stringify(await run.result())}\n`);
  await runtime.close();
  await journal.close();
}

const [, , folder, text] = process.argv;
if (import.meta.main && folder !== undefined && text !== undefined) {
  obey(folder, JSON.parse(text) as Command).catch((error: { code?: string; message: string }) => {
    process.stdout.write(`${JSON.stringify({ status: 'refused', code: error.code, message: error.message })}\n`);
  });
}
