/** `webhooks()`: posts recorded events of runs to the addresses of webhooks, at least once and in order. */
import { asJson, assertOptions, defined, type Namespace, type OptionShape, PilotageError, type StoreItem } from '#core';
import type { PartStore, Runtime } from '#runtime';
import { type ErrorText, plainErrorText } from '../problem.ts';
import { Deliverer, type DelivererOptions } from './deliverer.ts';
import { assertPostable } from './post.ts';
import {
  assertWebhook,
  type Delivery,
  deliveriesOf,
  deliveryValue,
  endedOf,
  freshSecret,
  hooksOf,
  storedDelivery,
  storedWebhook,
  type Webhook,
  type WebhookFormat,
  type WebhookOptions,
} from './subscription.ts';

export interface WebhooksOptions extends DelivererOptions {
  readonly runtime: Runtime;
  /** Makes the text about an error of a run. Default: that something went wrong, with the code. */
  readonly errorText?: ErrorText;
  /** Called when a run is given up, and with other errors of delivering. Default: a process warning. */
  readonly onFault?: (error: unknown) => void;
  /** How long beyond `timeoutMs` a process that posts may be silent before another one takes its run over, in milliseconds. Default 10,000. */
  readonly leaseMs?: number;
}

/** Counts of runs, among those of which something was posted or tried. */
export interface WebhookState {
  /** Those that have not ended, or are not delivered whole. */
  readonly open: number;
  /** Those of which something is posted just now, in any process. */
  readonly posting: number;
  /** Those that wait for a retry, and when the first of these is. Milliseconds since the epoch. */
  readonly failing: number;
  readonly nextAt?: number;
  readonly gaveUp: number;
  /** The delivery that failed last, with its error. */
  readonly last?: Delivery;
}

const OPTIONS: OptionShape<WebhooksOptions> = {
  runtime: 'object',
  errorText: 'function?',
  onFault: 'function?',
  leaseMs: 'count?',
  pollMs: 'count?',
  maxPosts: 'count?',
  maxPostsPerTenant: 'count?',
  backoff: 'object?',
  giveUpAfterMs: 'count?',
  allowHosts: 'list?',
  timeoutMs: 'count?',
};
const LEASE_MS = 10_000;
const DELETED_AT_ONCE = 500;

/** @throws PilotageError `invalid_config`. */
export function webhooks(options: WebhooksOptions): Webhooks {
  return new Webhooks(options);
}

type StoredDelivery = Pick<StoreItem, 'key' | 'value'>;

/** The webhooks of a journal. They are stored, and any process that calls `work()` may deliver. */
export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #store: PartStore;
  #deliverer: Deliverer | undefined;
  #working = 0;

  constructor(options: WebhooksOptions) {
    assertOptions('webhooks', options, OPTIONS);
    this.#options = options;
    this.#store = options.runtime.partStore('webhooks');
  }

  /**
   * Stores a webhook: from now on the events of its runs are posted. The same id again changes it.
   * @returns the webhook, with the secret by which its receiver checks signatures.
   * @throws PilotageError `invalid_config`, `url_refused`, or a store error.
   */
  async put(options: WebhookOptions): Promise<Webhook> {
    assertWebhook(options);
    return this.putAs(options, { format: 'events' });
  }

  /** Stores a webhook for a part of the server that posts in a form of its own. */
  async putAs(
    options: WebhookOptions,
    more: {
      readonly format: WebhookFormat;
      readonly headers?: Readonly<Record<string, string>>;
      readonly since?: number;
    },
  ): Promise<Webhook> {
    await this.assertUrl(options.url);
    const { tenant, id } = options;
    const place = { namespace: hooksOf(tenant), key: id };
    for (;;) {
      const item = await this.#store.get(place.namespace, id);
      const known = item ?? (await this.#store.get(endedOf(tenant), id));
      const before = known && storedWebhook(known);
      const secret = options.secret ?? before?.secret ?? freshSecret();
      const since = before?.since ?? more.since ?? this.#store.now();
      const hook: Webhook = { ...options, ...more, secret, since };
      const writes = [
        { namespace: endedOf(tenant), key: id },
        { ...place, value: asJson(hook) },
      ];
      // When several processes put it at once, one makes the secret, and all give it back.
      const isPut = await this.#store.write(writes, { ...place, ...(item === undefined ? {} : { value: item.value }) });
      if (!isPut) continue;
      this.#deliverer?.add(hook);
      return hook;
    }
  }

  /** @throws PilotageError `url_refused` for an address that is never posted to. */
  async assertUrl(url: string): Promise<void> {
    await assertPostable(url, this.#options);
  }

  async get(tenant: string, id: string): Promise<Webhook | undefined> {
    const item = (await this.#store.get(hooksOf(tenant), id)) ?? (await this.#store.get(endedOf(tenant), id));
    return item && storedWebhook(item);
  }

  /** The webhooks of a tenant in the order of their ids, with those of one ended run last. With `run`, only the webhooks of this run. */
  async list(tenant: string, { run }: { readonly run?: string } = {}): Promise<Webhook[]> {
    const found: Webhook[] = [];
    for (const path of [hooksOf(tenant), endedOf(tenant)]) {
      for await (const item of this.#store.list(path, run === undefined ? undefined : { run })) {
        const hook = storedWebhook(item);
        if (hook !== undefined) found.push(hook);
      }
    }
    return found;
  }

  /** The webhooks of a tenant whose ids begin with this text, in the order of `list`. */
  async beginningWith(tenant: string, text: string): Promise<Webhook[]> {
    const found: Webhook[] = [];
    for (const path of [hooksOf(tenant), endedOf(tenant)]) {
      for await (const item of this.#store.beginningWith(path, text)) {
        const hook = storedWebhook(item);
        if (hook !== undefined) found.push(hook);
      }
    }
    return found;
  }

  /** Deletes a webhook, so that it gets no more posts. @returns whether there was one. */
  async delete(tenant: string, id: string): Promise<boolean> {
    const hook = await this.get(tenant, id);
    if (hook === undefined) return false;
    let gone: { namespace: Namespace; key: string }[] = [hooksOf(tenant), endedOf(tenant)].map((namespace) => ({
      namespace,
      key: id,
    }));
    // In parts, so that nobody waits long for one of them. What is left when the process dies expires by itself.
    for await (const { key } of this.#store.list(deliveriesOf(hook))) {
      gone.push({ namespace: deliveriesOf(hook), key });
      if (gone.length < DELETED_AT_ONCE) continue;
      await this.#store.write(gone);
      gone = [];
    }
    if (gone.length > 0) await this.#store.write(gone);
    return true;
  }

  /** How far the runs of a webhook are delivered. Failing runs have an `error`, and those that were given up have `gaveUpAt`. */
  async deliveries(tenant: string, id: string): Promise<Delivery[]> {
    const found: Delivery[] = [];
    for await (const item of this.#store.list(deliveriesOf({ tenant, id }))) found.push(storedDelivery(item));
    return found;
  }

  /** How a webhook stands, for whoever operates it. `undefined`: there is none of this id. */
  async state(tenant: string, id: string): Promise<WebhookState | undefined> {
    if ((await this.get(tenant, id)) === undefined) return undefined;
    const all = await this.deliveries(tenant, id);
    const failing = all.filter(({ error, gaveUpAt }) => error !== undefined && gaveUpAt === undefined);
    const failed = all.filter(({ error }) => error !== undefined);
    const last = failed.toSorted((left, right) => (right.failedAt ?? 0) - (left.failedAt ?? 0))[0];
    const nextAt = failing.length === 0 ? undefined : Math.min(...failing.map((each) => each.nextAt ?? 0));
    return {
      open: all.filter(({ done }) => done !== true).length,
      posting: all.filter(({ claim }) => claim !== undefined).length,
      failing: failing.length,
      gaveUp: failed.length - failing.length,
      ...defined({ nextAt, last }),
    };
  }

  /**
   * Tries runs again whose posts have failed: all of them, or one.
   * @returns how many runs.
   * @throws PilotageError `run_not_found` for a run whose posts have not failed.
   */
  async retry(tenant: string, id: string, run?: string): Promise<number> {
    const namespace = deliveriesOf({ tenant, id });
    const failed: StoredDelivery[] = [];
    for await (const item of this.#store.list(namespace)) {
      const isMeant = run === undefined || item.key === run;
      if (isMeant && storedDelivery(item).error !== undefined) failed.push(item);
    }
    if (run !== undefined && failed.length === 0)
      throw new PilotageError('run_not_found', `Nothing of the run ${run} waits for the webhook ${id}.`);
    const runs: string[] = [];
    for (const item of failed) if (await this.#forgive(namespace, item)) runs.push(item.key);
    this.#deliverer?.retry({ tenant, id }, runs);
    return runs.length;
  }

  /** Takes the failures of a run back. @returns false when it has none any more: it was delivered meanwhile, or its webhook deleted. */
  async #forgive(namespace: Namespace, seen: StoredDelivery): Promise<boolean> {
    const { key } = seen;
    for (
      let item: StoredDelivery | undefined = seen;
      item !== undefined;
      item = await this.#store.get(namespace, key)
    ) {
      const { run, position, claim, error } = storedDelivery(item);
      if (error === undefined) return false;
      const value = deliveryValue({ run, position, claim });
      if (await this.#store.write([{ namespace, key, value }], { namespace, key, value: item.value })) return true;
    }
    return false;
  }

  /**
   * Posts new events, until the returned function is called. Call it where `runtime.work()` is called. Of all processes that do, one at a time posts of a run,
   * and another one takes the run over when it dies.
   */
  work(): () => Promise<void> {
    const { runtime, errorText = plainErrorText, onFault = warn, leaseMs = LEASE_MS } = this.#options;
    this.#working += 1;
    const deps = { runtime, errorText, onFault, store: this.#store, leaseMs };
    this.#deliverer ??= new Deliverer(deps, this.#options);
    let isLeft = false;
    return async () => {
      if (isLeft) return;
      isLeft = true;
      this.#working -= 1;
      if (this.#working > 0) return;
      const deliverer = this.#deliverer;
      this.#deliverer = undefined;
      await deliverer?.stop();
    };
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
