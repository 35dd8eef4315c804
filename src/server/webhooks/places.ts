/**
 * The places for posts that are under way. Webhooks take turns, a tenant has a part of the places at most, and receivers that were slow or failed last have half
 * of them together: whoever does not answer delays itself, and at most its own tenant.
 */
import { keyOf, type Webhook } from './subscription.ts';

export interface PlaceLimits {
  /** How many there are, and how many of them one tenant may have. */
  readonly all: number;
  readonly ofTenant: number;
}

/** Gives the place back. */
export type Leave = () => void;

interface Waiter {
  readonly hook: Webhook;
  take(leave: Leave): void;
}

export class Places {
  readonly #limits: PlaceLimits;
  readonly #taken = new Taken();
  /** Those among them of webhooks whose receivers were slow when the place was taken. */
  readonly #slowTaken = new Taken();
  /** Those who wait, by their webhook. The webhook that was given a place last is the last one. */
  readonly #waiting = new Map<string, Line>();
  readonly #slow = new Set<string>();

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  take(hook: Webhook): Promise<Leave> {
    const key = keyOf(hook);
    const line = this.#waiting.get(key);
    if (line === undefined && this.#hasRoom(hook)) return Promise.resolve(this.#occupy(hook));
    return new Promise((take) => {
      if (line === undefined) this.#waiting.set(key, new Line({ hook, take }));
      else line.add({ hook, take });
    });
  }

  /** How the last post of the webhook went: whether its receiver took long, or refused it. */
  note(hook: Pick<Webhook, 'tenant' | 'id'>, isSlow: boolean): void {
    if (isSlow) this.#slow.add(keyOf(hook));
    else this.#slow.delete(keyOf(hook));
  }

  /** Whoever waits goes on, for good. */
  close(): void {
    for (const line of this.#waiting.values()) for (const { take } of line.all) take(() => {});
    this.#waiting.clear();
  }

  #occupy(hook: Webhook): Leave {
    const { tenant } = hook;
    const counts = this.#slow.has(keyOf(hook)) ? [this.#taken, this.#slowTaken] : [this.#taken];
    for (const count of counts) count.add(tenant, 1);
    return () => {
      for (const count of counts) count.add(tenant, -1);
      this.#serve();
    };
  }

  #serve(): void {
    for (const [key, line] of this.#waiting) {
      if (this.#taken.size >= this.#limits.all) return;
      const { first } = line;
      if (!this.#hasRoom(first.hook)) continue;
      this.#waiting.delete(key);
      if (line.leave()) this.#waiting.set(key, line);
      first.take(this.#occupy(first.hook));
    }
  }

  #hasRoom(hook: Webhook): boolean {
    const { all, ofTenant } = this.#limits;
    const { tenant } = hook;
    if (this.#taken.size >= all || this.#taken.of(tenant) >= ofTenant) return false;
    if (!this.#slow.has(keyOf(hook))) return true;
    return this.#slowTaken.size < halfOf(all) && this.#slowTaken.of(tenant) < halfOf(ofTenant);
  }
}

/** Those who wait for one webhook, perhaps 100,000. A set would step over all who have left to find the first. */
class Line {
  #waiters: Waiter[];
  #left = 0;
  #first: Waiter;

  constructor(first: Waiter) {
    this.#waiters = [first];
    this.#first = first;
  }

  get first(): Waiter {
    return this.#first;
  }

  get all(): readonly Waiter[] {
    return this.#waiters.slice(this.#left);
  }

  add(waiter: Waiter): void {
    this.#waiters.push(waiter);
  }

  /** The first one leaves. @returns false when it was the last one. */
  leave(): boolean {
    this.#left += 1;
    const next = this.#waiters[this.#left];
    if (next === undefined) return false;
    this.#first = next;
    if (this.#left * 2 < this.#waiters.length) return true;
    this.#waiters = this.#waiters.slice(this.#left);
    this.#left = 0;
    return true;
  }
}

/** How many places are taken, by all and by each tenant. */
class Taken {
  size = 0;
  readonly #byTenant = new Map<string, number>();

  of(tenant: string): number {
    return this.#byTenant.get(tenant) ?? 0;
  }

  add(tenant: string, by: 1 | -1): void {
    this.size += by;
    const count = this.of(tenant) + by;
    if (count === 0) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, count);
  }
}

function halfOf(count: number): number {
  return Math.max(1, Math.floor(count / 2));
}
