/** How many runs this process drives at once, in all and of one tenant, and which of those that wait for a slot has the next one. */
import { type QueuedRun, RunQueue } from './run-queue.ts';

export interface SlotLimits {
  readonly runs: number;
  readonly perTenant: number;
}

/** A slot that is taken. */
export interface Slot {
  /** The tenant that it counts for. */
  readonly tenant: string;
}

export class Slots {
  /** Runs that wait for one. */
  readonly queue: RunQueue = new RunQueue();
  readonly #limits: SlotLimits;
  readonly #byTenant = new Map<string, number>();
  #taken = 0;
  #onRoom: (() => void)[] = [];

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#taken === 0;
  }

  /** How many are free. */
  get room(): number {
    return Math.max(0, this.#limits.runs - this.#taken);
  }

  get hasRoom(): boolean {
    return this.#taken < this.#limits.runs;
  }

  /** How many runs one tenant may have here. */
  get perTenant(): number {
    return this.#limits.perTenant;
  }

  /** How many it may have that leaves an equal share to one that comes. @param more tenants that have none here yet. */
  shareWith(more: number): number {
    const share = Math.max(1, Math.floor(this.#limits.runs / (this.#byTenant.size + more + 1)));
    return Math.min(share, this.#limits.perTenant);
  }

  /** Tenants that have so many runs here, or more. */
  tenantsWith(count: number): readonly string[] {
    return [...this.#byTenant].flatMap(([tenant, has]) => (has >= count ? [tenant] : []));
  }

  /** How many runs the tenant has that has most of them here, but for these. */
  mostOfOne(exceptTenants: readonly string[]): number {
    let most = 0;
    for (const [tenant, has] of this.#byTenant) if (!exceptTenants.includes(tenant)) most = Math.max(most, has);
    return most;
  }

  /** Tenants that have as many runs here as one may have. */
  fullTenants(): readonly string[] {
    return this.tenantsWith(this.#limits.perTenant);
  }

  /** Before a claim, so that no more runs are claimed than can be driven. */
  take(tenant: string): Slot | undefined {
    if (!this.takeAny()) return undefined;
    const slot = this.assign(tenant);
    if (slot === undefined) this.#taken -= 1;
    return slot;
  }

  /** One more, for a run that is driven already. Others wait until there is room again. */
  add(tenant: string): Slot {
    this.#taken += 1;
    this.#byTenant.set(tenant, (this.#byTenant.get(tenant) ?? 0) + 1);
    return { tenant };
  }

  /** A slot for a run of a tenant that is not known yet. */
  takeAny(): boolean {
    if (!this.hasRoom) return false;
    this.#taken += 1;
    return true;
  }

  /** Gives a slot that was taken for any tenant to this tenant, if it may have one more. */
  assign(tenant: string): Slot | undefined {
    const count = this.#byTenant.get(tenant) ?? 0;
    if (count >= this.#limits.perTenant) return undefined;
    this.#byTenant.set(tenant, count + 1);
    return { tenant };
  }

  free({ tenant }: Slot): void {
    const count = this.#byTenant.get(tenant) ?? 0;
    if (count <= 1) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, count - 1);
    this.queue.readmit(tenant);
    this.freeAny();
  }

  /** Gives back a slot that was given to no tenant. */
  freeAny(): void {
    this.#taken -= 1;
    if (this.#onRoom.length === 0) return;
    const tells = this.#onRoom;
    this.#onRoom = [];
    for (const tell of tells) tell();
  }

  /** Calls `tell` once, when a slot becomes free. */
  onRoom(tell: () => void): true {
    this.#onRoom.push(tell);
    return true;
  }

  /** The first run of the queue whose tenant may have one more, with the slot that it has now. */
  next(): { readonly waiting: QueuedRun; readonly slot: Slot } | undefined {
    while (this.hasRoom) {
      const waiting = this.queue.first();
      if (waiting === undefined) return undefined;
      const slot = this.take(waiting.tenant);
      if (slot === undefined) {
        this.queue.setFirstAside();
        continue;
      }
      this.queue.forget(waiting.run);
      return { waiting, slot };
    }
    return undefined;
  }
}
