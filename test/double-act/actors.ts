/** The side of whoever plays: starts the processes that act, tells them what to do, and hears what they say. */
import { join } from 'node:path';
import { bear } from '../kit/lives.ts';
import type { Command, Said } from './actor.ts';

const ACTOR = join(import.meta.dirname, 'actor.ts');

export interface Actor {
  readonly pid: number;
  /** It has died, or is about to. */
  readonly isDead: boolean;
  tell(command: Command): void;
  /** SIGKILL, SIGSTOP or SIGCONT. */
  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void;
  /** Hears from now on what is said of a play, until the returned function is called. */
  listen(play: string, hear: (said: Said) => void): () => void;
  /** Fails when it ends in another way than by SIGKILL or by the end of its input. */
  readonly end: Promise<boolean>;
  /** Lets it end by itself. */
  leave(): Promise<void>;
}

/** @returns when it is ready to be told what to do. */
export async function actor(folder: string): Promise<Actor> {
  const listeners = new Set<{ readonly play: string; hear(said: Said): void }>();
  let isDead = false;
  let ready = (): void => {};
  const isReady = new Promise<void>((resolve) => {
    ready = resolve;
  });
  const { child, end } = bear({ program: ACTOR, folder, args: [] }, (line) => {
    const said = JSON.parse(line) as Said;
    if (said.said === 'ready') ready();
    else for (const listener of [...listeners]) if (listener.play === said.play) listener.hear(said);
  });
  const ended = end.finally(() => {
    isDead = true;
  });
  // Whoever waits for it hears of it.
  ended.catch(() => {});
  await Promise.race([isReady, ended]);
  return {
    pid: child.pid ?? 0,
    get isDead() {
      return isDead;
    },
    tell: (command) => void child.stdin.write(`${JSON.stringify(command)}\n`),
    signal: (signal) => {
      if (signal === 'SIGKILL') isDead = true;
      child.kill(signal);
    },
    listen: (play, hear) => {
      const listener = { play, hear };
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    end: ended,
    leave: async () => {
      child.stdin.end();
      await ended;
    },
  };
}
