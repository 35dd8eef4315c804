/** The side of whoever plays: starts the processes that act, stops and kills them, and hears what they say. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bear } from '../kit/lives.ts';
import type { Command, Said } from './words.ts';

const ACTOR = join(import.meta.dirname, 'actor.ts');
const LOOK_MS = 10;
const CLOSING_MS = 30_000;

export interface Member {
  readonly pid: number;
  readonly isDead: boolean;
  /** Stopped, or with an event loop that is blocked. */
  readonly isStill: boolean;
  readonly isReady: boolean;
  tell(command: Command): void;
  kill(): Promise<void>;
  /** Stopped for so long; or until it is told to go on. */
  stop(): Promise<void>;
  goOn(): Promise<void>;
  block(ms: number): Promise<void>;
  /** Sets its clock so far ahead of the machine's. */
  shift(ms: number): Promise<void>;
  /** How far ahead its clock was set last. */
  readonly aheadMs: number;
  /** Lets it close what it has open. @throws Error when it does not end, or not well. */
  leave(): Promise<void>;
}

/** @param hear gets what it says, with the member itself. */
export function member(
  places: readonly [folder: string, database: string, seed: string, role: 'worker' | 'keeper'],
  hear: (said: Said, from: Member) => void,
): Member {
  const [folder, ...args] = places;
  let isDead = false;
  let isKilled = false;
  let isReady = false;
  let awaited = 0;
  let isStopped = false;
  let aheadMs = 0;
  let unset = 0;
  const { child, end } = bear({ program: ACTOR, folder, args }, (line) => {
    const said = JSON.parse(line) as Said;
    if (said.said === 'ready') isReady = true;
    if (said.said === 'did' && (said.what === 'wake' || said.what === 'block')) awaited -= 1;
    if (said.said === 'did' && said.what === 'shift') unset -= 1;
    hear(said, self);
  });
  const ended = end.then(
    (wasKilled) => {
      isDead = true;
      if (wasKilled && !isKilled) hear({ said: 'fault', code: 'died', message: 'killed by somebody else' }, self);
    },
    (error: unknown) => {
      isDead = true;
      hear({ said: 'fault', code: 'died', message: String(error) }, self);
    },
  );
  const tell = (command: Command): void => void child.stdin.write(`${JSON.stringify(command)}\n`);
  const self: Member = {
    pid: child.pid ?? 0,
    get isDead() {
      return isDead || isKilled;
    },
    get isStill() {
      return !isDead && (isStopped || awaited > 0);
    },
    get isReady() {
      return isReady;
    },
    tell,
    kill: () => {
      isKilled = true;
      child.kill('SIGKILL');
      return ended;
    },
    stop: async () => {
      isStopped = true;
      child.kill('SIGSTOP');
      // The signal has arrived when this process is heard of no more; what it did before counts.
      await sleep(LOOK_MS);
    },
    goOn: async () => {
      if (!isStopped) return;
      awaited += 1;
      tell({ do: 'wake' });
      isStopped = false;
      while (awaited > 0 && !self.isDead) {
        child.kill('SIGCONT');
        await sleep(LOOK_MS);
      }
    },
    block: async (ms) => {
      awaited += 1;
      tell({ do: 'block', ms });
      while (awaited > 0 && !self.isDead) await sleep(LOOK_MS);
    },
    get aheadMs() {
      return aheadMs;
    },
    shift: async (ms) => {
      aheadMs = ms;
      unset += 1;
      tell({ do: 'shift', ms });
      while (unset > 0 && !self.isDead) await sleep(LOOK_MS);
    },
    leave: async () => {
      if (self.isDead) return ended;
      tell({ do: 'close' });
      const waited = await Promise.race([ended.then(() => true), sleep(CLOSING_MS, false, { ref: false })]);
      if (waited) return;
      await self.kill();
      throw new Error(`The process ${self.pid} did not close within ${CLOSING_MS} ms.`);
    },
  };
  return self;
}
