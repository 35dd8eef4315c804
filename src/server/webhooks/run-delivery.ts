/**
 * Posts what is new of one run to one webhook. Whoever posts has claimed it in the item that says how far the run is delivered, and moves that position on under
 * its claim: another process posts nothing meanwhile, and goes on from there when the claim is over.
 */
import { createHash } from 'node:crypto';
import {
  asJson,
  defined,
  describeThrown,
  type Json,
  jsonEquals,
  PilotageError,
  type RunEvent,
  type StoreWrite,
} from '#core';
import { hasEnded } from '#journal';
import { isDeadOwner, ownerName, type PartStore, type Run } from '#runtime';
import { type BodySource, postedBody } from './bodies.ts';
import { MAX_RETRY_AFTER_MS, type PostFailure, type PostOptions, post, TIMEOUT_MS } from './post.ts';
import {
  type Delivery,
  deliveriesOf,
  deliveryValue,
  endedOf,
  hooksOf,
  isWanted,
  KEPT_MS,
  storedDelivery,
  storedWebhook,
  type Webhook,
} from './subscription.ts';

export interface DeliveryOptions extends PostOptions {
  /** How long to wait after a failed post, in milliseconds: first `baseMs`, then twice as long each time, up to `maxMs`. Default 1,000 and 300,000. */
  readonly backoff?: { readonly baseMs?: number; readonly maxMs?: number };
  /** A run whose posts have failed for so long, in milliseconds, is given up, until `retry` is called. Default: 3 days. */
  readonly giveUpAfterMs?: number;
}

export interface DeliveryDeps extends BodySource {
  readonly store: PartStore;
  /** How long after the time limit of a post its claim lasts, in milliseconds. */
  readonly leaseMs: number;
  readonly onFault: (error: unknown) => void;
  /** How the last post of a webhook went. */
  readonly note: (hook: Webhook, isSlow: boolean) => void;
}

/** What this process knows of a run of a webhook. */
export interface RunProgress {
  readonly run: string;
  /** Everything up to this position is delivered, or not wanted. */
  readTo: number;
  /** When the run was stored of which that is so. */
  begun?: number | undefined;
  /** When the retry that is planned for `nextAt` is due, by the monotonic clock: nobody sets it. */
  retry?: { readonly nextAt: number; readonly at: number } | undefined;
  /** The claim of another process, and since when it was seen without a change, by the monotonic clock. */
  held?: { readonly claim: Json; readonly since: number } | undefined;
}

/** What is to be done with the run next. */
export type NextTurn =
  /** There may be more now. */
  | { readonly kind: 'more' }
  /** When it has news. `gaveUp`: when somebody calls `retry`. */
  | { readonly kind: 'idle'; readonly gaveUp?: true }
  | { readonly kind: 'later'; readonly ms: number }
  /** All is delivered, or nothing can be any more. */
  | { readonly kind: 'over' }
  /** The webhook is another one now, or gone. */
  | { readonly kind: 'changed'; readonly hook: Webhook | undefined };

const MORE: NextTurn = { kind: 'more' };
const OVER: NextTurn = { kind: 'over' };
const BASE_MS = 1_000;
const MAX_MS = 300_000;
const GIVE_UP_MS = 3 * 24 * 3_600_000;
/** So many events, other runs have their turn. */
const EVENTS_AT_ONCE = 100;
/** A receiver that takes longer shares places with others such. */
const SLOW_MS = 1_000;
/** Clocks of processes may be so far apart. */
const APART_MS = 60_000;
/** How long the delivery of an open run is kept. A run that goes on after that is posted again from its start. */
const OPEN_TTL_MS = 400 * 24 * 3_600_000;

export class RunDelivery {
  readonly #deps: DeliveryDeps;
  readonly #options: DeliveryOptions;
  readonly #signal: AbortSignal;
  readonly #owner = ownerName();

  constructor(deps: DeliveryDeps, options: DeliveryOptions, signal: AbortSignal) {
    this.#deps = deps;
    this.#options = options;
    this.#signal = signal;
  }

  /** Posts some of what is new, in order, until a post fails. @throws a store error, or the reason of the signal. */
  async turn(hook: Webhook, known: RunProgress): Promise<NextTurn> {
    const { store, runtime } = this.#deps;
    if (hook.since > store.now() + APART_MS) return this.#beginEarlier(hook);
    const run = runtime.run(known.run);
    const item = await store.get(deliveriesOf(hook), known.run);
    const record = await run.record().catch(unlessMissing);
    const kept = new Kept(store, hook, known.run, item?.value, record?.createdAt);
    const { delivery } = kept;
    if (record === undefined) return this.#deleted(hook, kept);
    if (known.begun !== record.createdAt)
      Object.assign(known, { begun: record.createdAt, readTo: 0, retry: undefined });
    if (delivery.gaveUpAt !== undefined) return { kind: 'idle', gaveUp: true };
    const waitMs = this.#claimedMs(known, delivery) ?? this.#untilRetryMs(known, delivery);
    if (waitMs > 0) return { kind: 'later', ms: waitMs };
    const from = Math.max(delivery.position, known.readTo) + 1;
    const page = await run.recorded({ from, limit: EVENTS_AT_ONCE }).catch(unlessMissing);
    if (page === undefined) return this.#deleted(hook, kept);
    if (page.next === from) return this.#isOver(hook, known, kept, run);
    const next = await this.#post(hook, known, kept, run, page.events);
    if (next === undefined) known.readTo = Math.max(known.readTo, page.next - 1);
    return next ?? MORE;
  }

  /** Nobody can post any more of the run: it was pruned, or its session was deleted. What had failed until then is told. */
  async #deleted(hook: Webhook, kept: Kept): Promise<NextTurn> {
    const { run, position, attempts, error, gaveUpAt, done } = kept.delivery;
    if (kept.isStored && (await kept.remove()) && attempts !== undefined && gaveUpAt === undefined && done !== true) {
      const words = `Run ${run} was deleted before the webhook ${hook.id} of ${hook.tenant} had taken what stands behind position ${position}, after ${attempts} posts: ${error}`;
      this.#deps.onFault(new PilotageError('run_not_found', words));
    }
    return OVER;
  }

  /** The clock was ahead when the webhook was made. What happened shortly before it was made may be posted, so that nothing is lost. */
  async #beginEarlier(hook: Webhook): Promise<NextTurn> {
    const { store } = this.#deps;
    const place = { namespace: hooksOf(hook.tenant), key: hook.id };
    const since = store.now() - APART_MS;
    await store.write([{ ...place, value: asJson({ ...hook, since }) }], { ...place, value: asJson(hook) });
    return { kind: 'changed', hook: await currentOf(store, hook) };
  }

  /** @returns when to look again whether another process is still posting; `undefined`: none is. */
  #claimedMs(known: RunProgress, { claim }: Delivery): number | undefined {
    if (claim === undefined || claim.owner === this.#owner || isDeadOwner(claim.owner)) {
      known.held = undefined;
      return undefined;
    }
    const seen = asJson(claim);
    if (known.held === undefined || !jsonEquals(known.held.claim, seen))
      known.held = { claim: seen, since: performance.now() };
    // A clock that was set back makes no claim longer than it was.
    const ownLeftMs = this.#claimMs - (performance.now() - known.held.since);
    const leftMs = Math.min(claim.until - this.#deps.store.now(), ownLeftMs);
    // It may be given back before.
    if (leftMs > 0) return Math.min(leftMs, this.#deps.leaseMs);
    known.held = undefined;
    return undefined;
  }

  #untilRetryMs(known: RunProgress, { nextAt }: Delivery): number {
    if (nextAt === undefined) return 0;
    if (known.retry?.nextAt === nextAt) return known.retry.at - performance.now();
    const leftMs = nextAt - this.#deps.store.now();
    // It was planned by a clock that was ahead, or this one was set back.
    if (leftMs > Math.max(this.#options.backoff?.maxMs ?? MAX_MS, MAX_RETRY_AFTER_MS)) return 0;
    known.retry = { nextAt, at: performance.now() + leftMs };
    return leftMs;
  }

  get #claimMs(): number {
    return (this.#options.timeoutMs ?? TIMEOUT_MS) + this.#deps.leaseMs;
  }

  /** Posts these events. @returns `undefined` when all are. */
  async #post(
    hook: Webhook,
    known: RunProgress,
    kept: Kept,
    run: Run,
    events: readonly RunEvent[],
  ): Promise<NextTurn | undefined> {
    const wanted = events.filter(({ type, occurredAt }) => isWanted(hook, type, occurredAt));
    for (const [index, event] of wanted.entries()) {
      if (this.#signal.aborted) return MORE;
      const made = await postedBody(this.#deps, hook, run, event);
      const isLast = wanted[index + 1]?.seq !== event.seq;
      if (made !== undefined) {
        // Whether it is still wanted is asked last.
        const now = await currentOf(this.#deps.store, hook);
        if (now === undefined || !jsonEquals(asJson(now), asJson(hook))) {
          if (kept.delivery.claim !== undefined) await kept.put({ ...kept.delivery, claim: undefined }, OPEN_TTL_MS);
          return { kind: 'changed', hook: now };
        }
        if (!(await this.#claim(kept))) return MORE;
        const nth = events.filter(({ seq }) => seq === event.seq).indexOf(event);
        const failure = await this.#send(
          hook,
          made,
          [hook.tenant, hook.id, run.id, known.begun ?? 0, event.seq, nth],
          kept,
        );
        if (failure !== undefined) return this.#fail(hook, known, kept, failure);
      }
      if (!isLast) continue;
      // The last one of the page gives the claim back.
      const claim = index < wanted.length - 1 ? this.#ownClaim() : undefined;
      if (kept.delivery.claim === undefined && made === undefined) continue;
      if (!(await kept.put({ run: run.id, position: event.seq, claim }, OPEN_TTL_MS))) return MORE;
      known.readTo = event.seq;
    }
    if (kept.delivery.claim?.owner !== this.#owner) return undefined;
    await kept.put({ ...kept.delivery, claim: undefined }, OPEN_TTL_MS);
    return undefined;
  }

  #ownClaim(): NonNullable<Delivery['claim']> {
    return { owner: this.#owner, until: this.#deps.store.now() + this.#claimMs };
  }

  async #claim(kept: Kept): Promise<boolean> {
    const { claim } = kept.delivery;
    // It lasts for one post and a while, and each position that is stored makes it anew.
    const enoughMs = this.#claimMs - this.#deps.leaseMs / 2;
    const isFresh = claim?.owner === this.#owner && claim.until - this.#deps.store.now() > enoughMs;
    return isFresh || kept.put({ ...kept.delivery, claim: this.#ownClaim() }, OPEN_TTL_MS);
  }

  async #send(
    hook: Webhook,
    made: { readonly type: string; readonly body: string },
    name: Json,
    kept: Kept,
  ): Promise<PostFailure | undefined> {
    const id = `msg_${createHash('sha256').update(JSON.stringify(name)).digest('hex').slice(0, 32)}`;
    const { url, secret, headers = {} } = hook;
    const since = performance.now();
    try {
      const failure = await post(url, { id, ...made, headers, secret }, this.#options, this.#signal);
      this.#deps.note(hook, failure !== undefined || performance.now() - since > SLOW_MS);
      return failure;
    } catch (error) {
      // It is stopped: whoever goes on need not wait for the claim.
      await kept.put({ ...kept.delivery, claim: undefined }, OPEN_TTL_MS).catch(() => {});
      throw error;
    }
  }

  async #fail(hook: Webhook, known: RunProgress, kept: Kept, failure: PostFailure): Promise<NextTurn> {
    const { backoff: { baseMs = BASE_MS, maxMs = MAX_MS } = {}, giveUpAfterMs = GIVE_UP_MS } = this.#options;
    const now = this.#deps.store.now();
    const { why, isGone, retryAfterMs = 0 } = failure;
    const { run, position, attempts: before = 0, failingSince = now } = kept.delivery;
    const attempts = before + 1;
    const failed: Delivery = { run, position, attempts, failingSince, failedAt: now, error: why };
    if (isGone || now - failingSince >= giveUpAfterMs) {
      if (!(await kept.put({ ...failed, gaveUpAt: now }, OPEN_TTL_MS))) return MORE;
      const words = `The webhook ${hook.id} of ${hook.tenant} gave run ${run} up behind position ${position}, after ${attempts} posts: ${why}`;
      this.#deps.onFault(new PilotageError('url_failed', words));
      return { kind: 'idle', gaveUp: true };
    }
    const waitMs = Math.min(maxMs, baseMs * 2 ** Math.min(before, 30));
    const ms = Math.max(retryAfterMs, waitMs * (0.5 + Math.random() / 2));
    const nextAt = now + ms;
    if (!(await kept.put({ ...failed, nextAt }, OPEN_TTL_MS))) return MORE;
    known.retry = { nextAt, at: performance.now() + ms };
    return { kind: 'later', ms };
  }

  /** The run has no more events. */
  async #isOver(hook: Webhook, known: RunProgress, kept: Kept, run: Run): Promise<NextTurn> {
    const record = await run.record().catch(unlessMissing);
    if (record === undefined) return this.#deleted(hook, kept);
    const position = Math.max(kept.delivery.position, known.readTo);
    if (record.head > position) return MORE;
    if (!hasEnded(record.status)) return { kind: 'idle' };
    if (kept.delivery.done !== true && !(await kept.put({ run: run.id, position, done: true }, KEPT_MS))) return MORE;
    if (hook.run !== undefined) await this.#retire(hook);
    return OVER;
  }

  /** Moves a webhook whose one run has ended to where it can be read and is no longer looked at. A webhook that was changed meanwhile stays. */
  async #retire({ tenant, id: key, ...hook }: Webhook): Promise<void> {
    const value = asJson({ ...hook, tenant, id: key });
    const there = { namespace: hooksOf(tenant), key };
    await this.#deps.store.write([there, { namespace: endedOf(tenant), key, value, ttlMs: KEPT_MS }], {
      ...there,
      value,
    });
  }
}

/** The item that says how far a run is delivered: it is written only as long as nobody else has written it. */
class Kept {
  readonly #store: PartStore;
  readonly #place: Pick<StoreWrite, 'namespace' | 'key'>;
  readonly #begun: number | undefined;
  #value: Json | undefined;

  /** @param begun when the run was stored; absent: it is not there. */
  constructor(store: PartStore, hook: Webhook, run: string, value: Json | undefined, begun: number | undefined) {
    this.#store = store;
    this.#place = { namespace: deliveriesOf(hook), key: run };
    this.#value = value;
    this.#begun = begun;
  }

  get isStored(): boolean {
    return this.#value !== undefined;
  }

  /** Nothing of this run, where the item is about one that had its id before. */
  get delivery(): Delivery {
    const { key } = this.#place;
    const stored = this.#value === undefined ? undefined : storedDelivery({ key, value: this.#value });
    const isOfAnother = this.#begun !== undefined && (stored?.begun ?? this.#begun) !== this.#begun;
    return stored === undefined || isOfAnother ? { run: key, position: 0 } : stored;
  }

  /** @returns false when somebody else has written. */
  remove(): Promise<boolean> {
    return this.#store.write([this.#place], { ...this.#place, ...defined({ value: this.#value }) });
  }

  /** @returns false when somebody else has. */
  async put(delivery: Delivery, ttlMs: number): Promise<boolean> {
    const value = deliveryValue({ ...delivery, ...defined({ begun: this.#begun }) });
    const seen = { ...this.#place, ...(this.#value === undefined ? {} : { value: this.#value }) };
    const isPut = await this.#store.write([{ ...this.#place, value, ttlMs }], seen);
    if (isPut) this.#value = value;
    return isPut;
  }
}

async function currentOf(store: PartStore, { tenant, id }: Webhook): Promise<Webhook | undefined> {
  const item = await store.get(hooksOf(tenant), id);
  return item && storedWebhook(item);
}

function unlessMissing(error: unknown): undefined {
  if (!PilotageError.is(error, 'run_not_found'))
    throw error instanceof Error ? error : new Error(describeThrown(error));
}
