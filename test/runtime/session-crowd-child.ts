/**
 * One of several processes on a journal with one session. `session-crowd-child.ts <folder> work` drives turns, and does what it is told in lines of
 * JSON; `session-crowd-child.ts <folder> read <from>` says each recorded event of the session.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as after } from 'node:timers/promises';
import { type Decision, local, type RunView, Thrown } from '#core';
import { createRuntime, type Runtime, type Session } from '#runtime';
import { asks, call, finish } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

type BusyMode = NonNullable<NonNullable<Parameters<Session['send']>[1]>['busy']>;

/** What a process is told to do, with a number of its own. */
export type Order = { readonly order: number } & (
  | { readonly does: 'send'; readonly id: string; readonly text: string; readonly busy: BusyMode }
  | {
      readonly does: 'edit';
      readonly id: string;
      readonly text: string;
      readonly busy: BusyMode;
      readonly turn: string;
    }
  | { readonly does: 'regenerate'; readonly id: string; readonly busy: BusyMode; readonly turn: string }
  | { readonly does: 'cancel'; readonly waiting: boolean }
  | { readonly does: 'switch'; readonly turn: string }
  | { readonly does: 'close' }
);

/** What became of it. */
export type Reply = { readonly order: number } & (
  | { readonly turn?: string; readonly as?: string }
  | { readonly refused: string; readonly message: string }
);

/** An event as every reader must have seen it. */
export type Told = readonly [position: number, type: string, run: string];

export const CROWD_SESSION = 'crowd';
/** Nothing of these is recorded. */
export const PASSING: readonly string[] = ['token', 'token.reset', 'tool.chunk', 'tool.late', 'task.progress'];
const WORK_MS = 15;

export function sessionRuntime(folder: string): Runtime {
  const note = (line: string): void => appendFileSync(`${folder}/work`, `${line} ${process.pid}\n`);
  const work = make('work', async (_, { identity: { run }, signal }) => {
    note(`begin ${run}`);
    try {
      await after(WORK_MS, undefined, { signal });
    } finally {
      note(`end ${run}`);
    }
    return 'worked';
  });
  /** The last word of what was said is what it does. */
  const next = ({ query, trajectory: { count, steering } }: RunView): Decision => {
    const does = query.split(' ').at(-1);
    if (count === 0 && does === 'work') return call('work');
    if (count < 4 && does === 'slow') return call('work');
    if (count === 0 && does === 'ask') return asks;
    return finish(`${count} steps, ${steering.length} heard`);
  };
  return createRuntime({
    planner: { name: 'crowd', next },
    tools: [work],
    journal: `${folder}/runs.db`,
    leaseMs: 3_000,
  });
}

const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

async function obey(session: Session, order: Order): Promise<Pick<Reply & { turn: string }, 'turn'> | object> {
  switch (order.does) {
    case 'send':
      return session.send(order.text, { id: order.id, busy: order.busy });
    case 'edit':
      return session.edit(order.turn, order.text, { id: order.id, busy: order.busy });
    case 'regenerate':
      return session.regenerate(order.turn, { id: order.id, busy: order.busy });
    case 'cancel':
      await session.cancel({ waiting: order.waiting });
      return {};
    case 'switch':
      await session.switchTo(order.turn);
      return {};
    case 'close':
      return {};
    default:
      return order satisfies never;
  }
}

async function work(runtime: Runtime, session: Session): Promise<void> {
  runtime.work();
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    const given = JSON.parse(line) as Order;
    const { order } = given;
    if (given.does === 'close') {
      lines.close();
      void runtime.close({ graceMs: 50 }).then(() => process.exit(0));
      return;
    }
    obey(session, given).then(
      ({ turn, as }: { turn?: string; as?: string }) => say({ order, turn, as }),
      (error: unknown) => {
        const { code, message } = Thrown.of(error);
        say({ order, refused: code ?? 'unknown', message });
      },
    );
  });
}

/** Every recorded event from the position on, until its reader leaves. */
export async function* toldBy(session: Session, from: number, signal?: AbortSignal): AsyncGenerator<Told> {
  for await (const { position, type, identity } of session.events({ from, ...(signal && { signal }) })) {
    if (!PASSING.includes(type)) yield [position, type, identity.run];
  }
}

const [, program = '', folder = '', role = '', from = '0'] = process.argv;
if (program.includes('session-crowd-child')) {
  const runtime = sessionRuntime(folder);
  const session = runtime.session(CROWD_SESSION, { identity: local('ana') });
  if (role === 'work') await work(runtime, session);
  else for await (const told of toldBy(session, Number(from))) say(told);
}
