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
  readonly #waiting = new Map<string, Set<Waiter>>();
  readonly #slow = new Set<string>();

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  take(hook: Webhook): Promise<Leave> {
    const key = keyOf(hook);
    const waiters = this.#waiting.get(key);
    if (waiters === undefined && this.#hasRoom(hook)) return Promise.resolve(this.#occupy(hook));
    return new Promise((take) => this.#waiting.set(key, (waiters ?? new Set<Waiter>()).add({ hook, take })));
  }

  /** How the last post of the webhook went: whether its receiver took long, or refused it. */
  note(hook: Pick<Webhook, 'tenant' | 'id'>, isSlow: boolean): void {
    if (isSlow) this.#slow.add(keyOf(hook));
    else this.#slow.delete(keyOf(hook));
  }

  /** Whoever waits goes on, for good. */
  close(): void {
    for (const waiters of this.#waiting.values()) for (const { take } of waiters) take(() => {});
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
    for (const [key, waiters] of this.#waiting) {
      if (this.#taken.size >= this.#limits.all) return;
      const [first] = waiters;
      if (first === undefined || !this.#hasRoom(first.hook)) continue;
      waiters.delete(first);
      this.#waiting.delete(key);
      if (waiters.size > 0) this.#waiting.set(key, waiters);
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
