/**
 * A process that pays once: `node standing-agent.ts <folder> <how>`. The first one starts the run and stands still at the worst
 * moment; the heir takes over whatever is due. What happens in the world stands in a file that is no part of the runtime.
 */
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { Append, Journal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local, tool } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';

/** The lease of all these processes. */
const LEASE_MS = 600;
const GRACE_MS = 3_000;

const HOWS = [
  // Works synchronously until another has its run and has asked what became of it, and then pays.
  'works',
  // Its loop is blocked between the commit that the call begins and the call, until another has made it.
  'blocked',
  // It is stopped there by a signal, until somebody lets it go on.
  'stopped',
  // It is stopped in the middle of the call, before it pays.
  'stopped inside',
  'heir',
] as const;
export type How = (typeof HOWS)[number];

export interface Line {
  readonly who: string;
  readonly what: 'paid' | 'asked' | 'standing' | 'fault';
  readonly told?: string;
}

export function readLines(folder: string): readonly Line[] {
  try {
    const lines = readFileSync(join(folder, 'world.jsonl'), 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Line);
  } catch {
    return [];
  }
}

function write(folder: string, line: Line): void {
  const file = openSync(join(folder, 'world.jsonl'), 'a');
  writeSync(file, `${JSON.stringify(line)}\n`);
  fsyncSync(file);
  closeSync(file);
}

/** Lets nothing else happen in this process until somebody has written such a line. */
function blockUntil(folder: string, what: Line['what']): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!readLines(folder).some((line) => line.what === what)) Atomics.wait(cell, 0, 0, 10);
}

/** Does it once the beginning of the call is in the journal, and before anything else can happen here. */
function afterBeginning(journal: Journal, act: () => void): Journal {
  return new Proxy(journal, {
    get(target, name) {
      if (name === 'append') {
        return async (append: Append): Promise<void> => {
          await target.append(append);
          if (append.entries.some(({ kind }) => kind === 'call_began')) act();
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function planner({ trajectory }: RunView): Decision {
  if (trajectory.count === 0) return { kind: 'call_tool', tool: 'pay', args: {} };
  const outcome = trajectory.step(0)?.calls[0]?.outcome;
  return {
    kind: 'finish',
    reason: 'goal',
    payload: outcome?.kind === 'value' ? outcome.value : (outcome?.kind ?? null),
  };
}

async function live(folder: string, how: How): Promise<void> {
  const file = sqliteJournal({ path: join(folder, 'pilotage.db') });
  const stand = (): void => {
    write(folder, { who: how, what: 'standing' });
    if (how === 'blocked') blockUntil(folder, 'paid');
    else process.kill(process.pid, 'SIGSTOP');
  };
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    effect: 'once',
    inputSchema: { type: 'object' },
    async execute() {
      if (how === 'works') {
        write(folder, { who: how, what: 'standing' });
        blockUntil(folder, 'asked');
      } else if (how === 'stopped inside') {
        await after(1);
        stand();
      }
      write(folder, { who: how, what: 'paid' });
      return how;
    },
    reconcile() {
      const paid = readLines(folder).find(({ what }) => what === 'paid');
      write(folder, { who: how, what: 'asked', told: paid === undefined ? 'not_done' : 'done' });
      return paid === undefined ? { status: 'not_done' } : { status: 'done', value: paid.who };
    },
  });
  const runtime = createRuntime({
    planner,
    tools: [pay],
    journal: how === 'blocked' || how === 'stopped' ? afterBeginning(file, stand) : file,
    leaseMs: LEASE_MS,
    takeoverGraceMs: GRACE_MS,
    onFault: (error) =>
      write(folder, { who: how, what: 'fault', told: (error as { code?: string }).code ?? String(error) }),
  });
  if (how === 'heir') runtime.work();
  else await runtime.start('pay', { identity: local('ana', { run: 'r' }) });
  process.stdout.write(`${JSON.stringify(await runtime.run('r').result())}\n`);
  await runtime.close();
  await file.close();
}

const [, , folder, how] = process.argv;
if (import.meta.main && folder !== undefined) await live(folder, how as How);
