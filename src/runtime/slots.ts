/**
 * How many runs this process drives at once, in all and of one tenant, and which of those that it is to drive come next:
 * by priority, then by age.
 */
export interface SlotLimits {
  readonly runs: number;
  readonly perTenant: number;
}

/** A slot that is taken. */
export interface Slot {
  /** The tenant that it counts for. */
  readonly tenant: string;
}

export interface QueuedRun {
  readonly run: string;
  readonly tenant: string;
  readonly priority: number;
  /** Drive it also when the code has changed since it started. Default false. */
  readonly acceptChanges?: boolean;
  /** How often in a row it could not be claimed. Default 0. */
  readonly tries?: number;
}

export class Slots {
  readonly #limits: SlotLimits;
  readonly #byTenant = new Map<string, number>();
  readonly #waiting: QueuedRun[] = [];
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

  /** A run that waits already keeps its place, unless its priority is another one now. */
  enqueue(waiting: QueuedRun): void {
    const index = this.#waiting.findIndex(({ run }) => run === waiting.run);
    const known = this.#waiting[index];
    const acceptChanges = known?.acceptChanges === true || waiting.acceptChanges === true;
    const wanted = { ...waiting, acceptChanges };
    if (known?.priority === waiting.priority) {
      this.#waiting[index] = wanted;
      return;
    }
    if (known !== undefined) this.#waiting.splice(index, 1);
    const after = this.#waiting.findIndex(({ priority }) => priority < waiting.priority);
    this.#waiting.splice(after === -1 ? this.#waiting.length : after, 0, wanted);
  }

  /** The first run that `slotFor` has a slot for, and what that gave. */
  next<T>(slotFor: (waiting: QueuedRun) => T | undefined): (T & { readonly waiting: QueuedRun }) | undefined {
    for (const [index, waiting] of this.#waiting.entries()) {
      const given = slotFor(waiting);
      if (given === undefined) continue;
      this.#waiting.splice(index, 1);
      return { ...given, waiting };
    }
    return undefined;
  }

  isWaiting(run: string): boolean {
    return this.#waiting.some((waiting) => waiting.run === run);
  }

  /** The run waits no more. */
  forget(run: string): void {
    const index = this.#waiting.findIndex((waiting) => waiting.run === run);
    if (index !== -1) this.#waiting.splice(index, 1);
  }

  /** Nobody waits any more. */
  clear(): void {
    this.#waiting.length = 0;
  }
}
