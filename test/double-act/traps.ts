/** Where and how a process is cut: it says so, and then dies, stands still, or hangs. */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Journal } from '#pilotage/journal';
import type { Entry } from '#pilotage/state';

/**
 * `begin`, `began`: before and after it is durable that a `once` call begins. `entered`: in the tool, before the effect.
 * `done`: in the tool, after it. `ending`, `ended`: before and after the outcome of a call is durable. `asked`: in
 * `reconcile`, before it has looked.
 */
export type Place = 'begin' | 'began' | 'entered' | 'done' | 'ending' | 'ended' | 'asked';

export interface Trap {
  readonly place: Place;
  /** 1: the first time that the process comes by. */
  readonly nth: number;
  /**
   * `kill`: SIGKILL. `stop`: SIGSTOP, until somebody sends SIGCONT. `block`: the event loop stands still for `ms`. `hang`: waits
   * until it is aborted. `deaf`: waits for `ms`, and does not listen to its signal.
   */
  readonly act: 'kill' | 'stop' | 'block' | 'hang' | 'deaf';
  readonly ms?: number;
}

/** What a process says, as one line of JSON. It is out when this returns, whatever becomes of the process. */
export function say(line: object): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

export class Springs {
  readonly #play: string;
  readonly #trap: Trap | undefined;
  #seen = 0;

  constructor(play: string, trap: Trap | undefined) {
    this.#play = play;
    this.#trap = trap;
  }

  /** Comes back at once, unless the trap is here. A promise only of a trap that lets the rest of the process go on. */
  at(place: Place, signal?: AbortSignal): void | Promise<void> {
    if (this.#trap?.place !== place) return;
    this.#seen += 1;
    if (this.#seen !== this.#trap.nth) return;
    say({ said: 'trap', play: this.#play, pid: process.pid });
    return spring(this.#trap, signal);
  }
}

function spring({ act, ms = 0 }: Trap, signal: AbortSignal | undefined): void | Promise<void> {
  switch (act) {
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      // The signal is on its way: nothing is done in between.
      return standStill(10_000);
    case 'stop':
      process.kill(process.pid, 'SIGSTOP');
      return standStill(20);
    case 'block':
      return standStill(ms);
    case 'hang':
      return new Promise((_, reject) => {
        const abort = (): void => reject(signal?.reason);
        if (signal?.aborted === true) abort();
        else signal?.addEventListener('abort', abort, { once: true });
      });
    case 'deaf':
      return sleep(ms);
    default:
      return act satisfies never;
  }
}

/** The whole event loop, not only who calls. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The journal, with its traps. @param claimed told of each claim. */
export function trapped(inner: Journal, springs: Springs, claimed: () => void): Journal {
  const has = (entries: readonly Entry[], kind: Entry['kind']): boolean => entries.some((entry) => entry.kind === kind);
  const append: Journal['append'] = async (request) => {
    const [begins, ends] = [has(request.entries, 'call_began'), has(request.entries, 'call_ended')];
    if (begins) await springs.at('begin');
    if (ends) await springs.at('ending');
    await inner.append(request);
    if (begins) await springs.at('began');
    if (ends) await springs.at('ended');
  };
  const claimParked: Journal['claimParked'] = async (request) => {
    const got = await inner.claimParked(request);
    for (const _ of got) claimed();
    return got;
  };
  const claimDue: Journal['claimDue'] = async (request) => {
    const got = await inner.claimDue(request);
    for (const _ of got) claimed();
    return got;
  };
  const claim: Journal['claim'] = async (request) => {
    const got = await inner.claim(request);
    if (got !== undefined) claimed();
    return got;
  };
  return new Proxy(inner, {
    get: (target, name) => {
      if (name === 'append') return append;
      if (name === 'claim') return claim;
      if (name === 'claimParked') return claimParked;
      if (name === 'claimDue') return claimDue;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
