/** What a call does to the world, noted outside of all processes; the process may die or stand still in the middle of it. */
import type { Json } from '#core';
import { never } from '#testing';
import type { ToolContext } from '#tools';
import type { Attempt, Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

export interface ToolWorld {
  readonly process: SimulatedProcess;
  readonly ledger: Ledger;
  /** The process may die in the call with this number, before it takes effect or after. */
  mayDie(call: number, landed: boolean): void;
  /** The process may stand still in the call with this number, before it takes effect. */
  mayFreeze(call: number): void;
  readonly graceMs: number;
  /** In the world outside of all processes. */
  later(ms: number, act: () => void): void;
  /** Counts the calls of this process and of those that were in its place before. */
  nextCall(): number;
}

/** Notes that this process is in the call, as long as it is. */
export async function atWork<T>(
  { idempotencyKey: key }: ToolContext,
  { process, ledger }: ToolWorld,
  act: () => Promise<T>,
): Promise<T> {
  const workers = ledger.atWork.get(key) ?? new Map<SimulatedProcess, number>();
  ledger.atWork.set(key, workers);
  // Several parts of a call may be under way at once.
  workers.set(process, (workers.get(process) ?? 0) + 1);
  try {
    return await act();
  } finally {
    const left = (workers.get(process) ?? 1) - 1;
    if (left === 0) workers.delete(process);
    else workers.set(process, left);
  }
}

/** Enters the call, and takes effect halfway through its time, unless `mayFail` throws. Gives the value, which whoever looks at the world can tell too. */
export function doIt<T extends Json>(
  deed: Omit<Attempt, 'order' | 'key'>,
  how: Omit<Doing, 'enteredAt'>,
  context: ToolContext,
  world: ToolWorld,
  value: T,
  mayFail: () => void,
): Promise<T> {
  const { process, ledger } = world;
  const { idempotencyKey: key } = context;
  const enteredAt = ledger.now();
  ledger.attempted({ ...deed, key }, process);
  noteNarrow(deed, key, world);
  return takeEffect(deed, { ...how, enteredAt }, context, world, value, mayFail);
}

interface Doing {
  readonly ms: number;
  readonly deaf: boolean;
  readonly isRemote: boolean;
  /** When the process has entered the call. */
  readonly enteredAt: number;
}

/** What a process does that has entered the call. */
export async function takeEffect<T extends Json>(
  { run, tool, id }: Pick<Attempt, 'run' | 'tool' | 'id'>,
  { ms, deaf, isRemote, enteredAt }: Doing,
  { idempotencyKey: key, signal: given }: ToolContext,
  world: ToolWorld,
  value: T,
  mayFail: () => void,
): Promise<T> {
  const { process, ledger } = world;
  const signal = deaf ? undefined : given;
  const call = world.nextCall();
  await pause(ms / 2, process, signal);
  world.mayDie(call, false);
  if (!process.alive) return never();
  world.mayFreeze(call);
  await process.wait(0);
  mayFail();
  ledger.values.set(key, value);
  const arrive = ledger.request(key, run, process, { enteredAt, graceMs: world.graceMs });
  if (isRemote && ms > 0) {
    const transitMs = Math.min(ms, LONGEST_WAY_MS);
    world.later(transitMs, arrive);
    world.mayDie(call, true);
    await pause(transitMs, process, signal);
  } else {
    arrive();
  }
  ledger.tell(process.name, () => `${run}: ${tool} ${id} takes effect`);
  world.mayDie(call, true);
  if (!process.alive) return never();
  await pause(ms / 2, process, signal);
  return value;
}

/** A process has one call of this tool under way in a run, at most. */
function noteNarrow({ tool, run }: Pick<Attempt, 'tool' | 'run'>, key: string, { process, ledger }: ToolWorld): void {
  if (tool !== 'narrow') return;
  const others = ledger.attempts.filter(
    (attempt) => attempt.tool === tool && attempt.run === run && attempt.key !== key && !isDeaf(attempt),
  );
  const beside = others.find((attempt) => ledger.atWork.get(attempt.key)?.has(process));
  if (beside !== undefined) ledger.violated('order', `${tool} is at work twice at once`, run);
}

/** One that goes on when it was given up holds no place. */
function isDeaf({ args }: Pick<Attempt, 'args'>): boolean {
  return args.includes('"deaf":true');
}

/** Nothing that was sent is on its way for longer. */
export const LONGEST_WAY_MS = 500;

/** Until so long has passed, or the call is stopped. */
export function pause(ms: number, process: SimulatedProcess, signal: AbortSignal | undefined): Promise<void> {
  if (ms === 0) return Promise.resolve();
  if (signal === undefined) return process.wait(ms);
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const cancel = process.clock.after(ms, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      reject(signal.reason);
    });
  });
}
