/**
 * The leases of this process: how it names itself as their owner, so that its death can be noticed on the same machine without waiting; and
 * the timer that renews them.
 */

import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Clock } from '#core';
import type { Journal } from '#journal';
import type { RunDriver } from '../loop/driver.ts';
import { momentOf, RENEWALS_A_LEASE } from '../loop/held-lease.ts';

/** What a process can find out about itself and its neighbours. `undefined`: it cannot be found out here. */
export interface ProcessSurroundings {
  readonly host: string;
  readonly pid: number;
  /** Another one after each boot of the machine, and on each machine. */
  readonly boot: string | undefined;
  /** Processes have different numbers in different ones. */
  readonly pidNamespace: string | undefined;
  /** When the process with this number in the same namespace was started, in any unit; or that no such process exists. */
  startOf(pid: number): string | 'gone' | undefined;
}

/** `host:pid:boot:PID namespace:start of the process:random`; what cannot be found out is empty. */
export function ownerName(here: ProcessSurroundings = SURROUNDINGS): string {
  const { host, pid, boot = '', pidNamespace = '' } = here;
  const start = here.startOf(pid) ?? '';
  return [encodeURIComponent(host), pid, boot, pidNamespace, start, crypto.randomUUID().slice(0, 8)].join(':');
}

/**
 * The owner was a process of this machine, boot and PID namespace, and is gone; another may have its number by now. In every
 * doubt it lives: somebody else's machine, container or platform, a name of another form.
 */
export function isDeadOwner(owner: string, here: ProcessSurroundings = SURROUNDINGS): boolean {
  const [host, pidText = '', boot, pidNamespace, start, ...rest] = owner.split(':');
  if (rest.length !== 1 || !/^[1-9]\d*$/.test(pidText)) return false;
  if (!boot || !pidNamespace || !start) return false;
  if (host !== encodeURIComponent(here.host) || boot !== here.boot || pidNamespace !== here.pidNamespace) return false;
  const now = here.startOf(Number(pidText));
  return now !== undefined && now !== start;
}

/** The owner in words, for people. */
export function ownerText(owner: string): string {
  const [host = '', pid] = owner.split(':');
  return pid === undefined ? owner : `process ${pid} on ${decodeURIComponent(host)}`;
}

/** Read from Linux' /proc. Elsewhere nobody is known to be dead, and a lease is over when its time is. */
export const SURROUNDINGS: ProcessSurroundings = {
  host: hostname(),
  pid: process.pid,
  get boot() {
    return ownProc()?.boot;
  },
  get pidNamespace() {
    return ownProc()?.pidNamespace;
  },
  startOf: (pid) => (ownProc() === undefined ? undefined : startOf(pid)),
};

let known: { readonly boot: string; readonly pidNamespace: string } | 'none' | undefined;

/** `undefined` where there is no /proc, or one of another PID namespace, whose numbers mean other processes. */
function ownProc(): { readonly boot: string; readonly pidNamespace: string } | undefined {
  known ??= readOwnProc() ?? 'none';
  return known === 'none' ? undefined : known;
}

function readOwnProc(): { readonly boot: string; readonly pidNamespace: string } | undefined {
  try {
    // One number for each namespace from that of /proc down to the process's own.
    const numbers = /^NSpid:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    if (numbers?.trim() !== String(process.pid)) return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const pidNamespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    return boot === '' || pidNamespace === undefined ? undefined : { boot, pidNamespace };
  } catch {
    return undefined;
  }
}

/** Its place in /proc may be hidden from other users, so that only the signal says that there is no such process. */
function startOf(pid: number): string | 'gone' | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return 'gone';
  }
  try {
    // After the name, which may hold anything: the state first, the start as the twentieth.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    // The process has ended, and its parent has not collected its status yet.
    if (fields[0] === 'Z' || fields[0] === 'X') return 'gone';
    return fields[19];
  } catch {
    return undefined;
  }
}

interface HeartbeatDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  /** Leases are renewed every third of it. */
  readonly leaseMs: number;
  /** The drivers of the runs that are driven now. */
  readonly drivers: () => readonly RunDriver[];
  readonly onFault: (error: unknown) => void;
}

/** Beats while runs are driven. */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  #cancel: (() => void) | undefined;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#cancel !== undefined) return;
    const { clock, leaseMs, onFault } = this.#deps;
    let cancel = (): void => {};
    let stopped = false;
    const beat = (): void => {
      if (stopped) return;
      cancel = clock.after(Math.max(1, Math.floor(leaseMs / RENEWALS_A_LEASE)), () => {
        renew(this.#deps).then(beat, (error: unknown) => {
          onFault(error);
          beat();
        });
      });
    };
    beat();
    this.#cancel = () => {
      stopped = true;
      cancel();
    };
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}

async function renew({ journal, clock, leaseMs, drivers }: HeartbeatDeps): Promise<void> {
  const asked = drivers();
  const askedAt = momentOf(clock);
  const leases = asked.map(({ lease: { run, fence } }) => ({ run, fence }));
  const signals = await journal.renew(leases, leaseMs);
  const now = new Set(drivers());
  for (const [index, driver] of asked.entries()) {
    const seen = signals[index];
    if (seen === undefined) {
      // A driver that has just ended has given its lease up itself.
      if (now.has(driver)) driver.stop('lost');
      continue;
    }
    driver.lease.renewed(askedAt);
    if (seen > driver.state.messagesTaken) driver.poke();
  }
}
