/** The machines that processes live on: who can see whom, by which number, and since which boot. */
import type { ProcessSurroundings } from '#runtime';
import type { Home } from './script-world.ts';

interface Neighbour {
  readonly start: string;
  readonly isAlive: () => boolean;
}

export class Machines {
  /** By machine, boot and PID namespace: who has or had which number. */
  readonly #numbered = new Map<string, Map<number, Neighbour>>();
  readonly #boots = new Map<number, number>();
  #starts = 0;

  /**
   * What a new process sees.
   * @param worker whose processes come one after another.
   * @param isAlive asked later.
   */
  enter(home: Home, worker: number, life: number, isAlive: () => boolean): ProcessSurroundings {
    const { host, machine, pidNamespace, reusesPids, reboots } = home;
    if (reboots) this.#boots.set(machine, life);
    const boot = `boot-${machine}-${this.#boots.get(machine) ?? 0}`;
    const place = `${boot}/${pidNamespace}`;
    const neighbours = this.#numbered.get(place) ?? new Map<number, Neighbour>();
    this.#numbered.set(place, neighbours);
    this.#starts += 1;
    const start = String(this.#starts);
    // In a container of its own a program has the same number each time.
    let pid = (pidNamespace === 'all' ? 100 * (worker + 1) : 1) + (reusesPids ? 0 : life);
    // A number is free again when its process is gone.
    while (neighbours.get(pid)?.isAlive() === true) pid += 1;
    neighbours.set(pid, { start, isAlive });
    const startOf = (asked: number): string | 'gone' => {
      const neighbour = neighbours.get(asked);
      return neighbour?.isAlive() === true ? neighbour.start : 'gone';
    };
    return { host, pid, boot, pidNamespace, startOf };
  }
}
