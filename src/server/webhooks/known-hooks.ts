/** The webhooks that this process knows, by the runs that they are for, and how far each of their runs is. */
import type { Scope } from '#core';
import type { RunProgress } from './run-delivery.ts';
import { type Delivery, keyOf, type Webhook } from './subscription.ts';

/** A run of a webhook that is not delivered, or may have more events. */
export interface HookRun extends RunProgress {
  isUnderWay: boolean;
  /** It had news while it was under way. */
  hasNews: boolean;
  /** Until a retry is due, or the claim of another process is over. */
  timer?: NodeJS.Timeout | undefined;
  gaveUp: boolean;
  faults: number;
}

export interface Hooked {
  readonly hook: Webhook;
  /** Its runs were not looked for yet. */
  isNew: boolean;
  readonly runs: Map<string, HookRun>;
  /** Runs that were delivered lately, up to these positions. They are listed again for a while. */
  readonly done: Map<string, Pick<Delivery, 'position' | 'begun'>>;
}

/** The webhooks of a tenant, by their keys. */
export interface Tenant {
  readonly wide: Map<string, Hooked>;
  /** Those of one run, by that run. */
  readonly ofRun: Map<string, Map<string, Hooked>>;
  /** All runs that were created before this time were seen. */
  seenUpTo: number;
}

export class KnownHooks {
  readonly #hooks = new Map<string, Hooked>();
  readonly #tenants = new Map<string, Tenant>();

  get size(): number {
    return this.#hooks.size;
  }

  get all(): readonly Hooked[] {
    return [...this.#hooks.values()];
  }

  get tenants(): readonly (readonly [string, Tenant])[] {
    return [...this.#tenants];
  }

  get(of: Pick<Webhook, 'tenant' | 'id'>): Hooked | undefined {
    return this.#hooks.get(keyOf(of));
  }

  add(hook: Webhook): Hooked {
    const key = keyOf(hook);
    const hooked: Hooked = { hook, runs: new Map(), done: new Map(), isNew: true };
    this.#hooks.set(key, hooked);
    const tenant: Tenant = this.#tenants.get(hook.tenant) ?? {
      wide: new Map(),
      ofRun: new Map(),
      seenUpTo: hook.since,
    };
    this.#tenants.set(hook.tenant, tenant);
    if (hook.run === undefined) {
      tenant.wide.set(key, hooked);
      tenant.seenUpTo = Math.min(tenant.seenUpTo, hook.since);
    } else {
      const beside = tenant.ofRun.get(hook.run) ?? new Map<string, Hooked>();
      tenant.ofRun.set(hook.run, beside.set(key, hooked));
    }
    return hooked;
  }

  /** @returns false when another one has its place, or it was removed before. */
  remove(hooked: Hooked): boolean {
    const { hook } = hooked;
    const key = keyOf(hook);
    if (this.#hooks.get(key) !== hooked) return false;
    this.#hooks.delete(key);
    const tenant = this.#tenants.get(hook.tenant);
    tenant?.wide.delete(key);
    const beside = hook.run === undefined ? undefined : tenant?.ofRun.get(hook.run);
    beside?.delete(key);
    if (beside?.size === 0) tenant?.ofRun.delete(hook.run ?? '');
    if (tenant?.wide.size === 0 && tenant.ofRun.size === 0) this.#tenants.delete(hook.tenant);
    return true;
  }

  /** The webhooks of a run. @param agent absent: those of any agent are among them. */
  *of(of: Scope & { readonly run: string }, agent?: string): Generator<Hooked> {
    const tenant = this.#tenants.get(of.tenant);
    if (tenant === undefined) return;
    for (const hooked of [...(tenant.ofRun.get(of.run)?.values() ?? []), ...tenant.wide.values()]) {
      const { hook } = hooked;
      const isMeant =
        (hook.user ?? of.user) === of.user &&
        (hook.session ?? of.session) === of.session &&
        (agent === undefined || (hook.agent ?? agent) === agent);
      if (isMeant) yield hooked;
    }
  }
}
