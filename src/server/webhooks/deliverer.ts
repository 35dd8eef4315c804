/**
 * Posts the new events of webhooks' runs: the events of one run in order, and several runs at once. For each tenant one process at a time does it. After each
 * post it stores how far it has come, under its lease, so that another process goes on from there and at most repeats the post that was under way.
 */
import { createHash } from 'node:crypto';
import { asJson, defined, describeThrown, jsonEquals, PilotageError, type StoreWrite } from '#core';
import { hasEnded, type RunRecord, type RunStatus } from '#journal';
import { PartLease, type PartStore, type Run } from '#runtime';
import { type BodySource, postedBody } from './bodies.ts';
import { type PostFailure, type PostOptions, post } from './post.ts';
import {
  type Delivery,
  deliveriesOf,
  deliveryValue,
  endedOf,
  HOOKS,
  hooksOf,
  isWanted,
  storedDelivery,
  storedWebhook,
  type Webhook,
} from './subscription.ts';

export interface DelivererOptions extends PostOptions {
  /** How often to look for new events, in milliseconds. Default 1,000. */
  readonly pollMs?: number;
  /** How many posts are under way at once. Default 16. */
  readonly maxPosts?: number;
  /** How long to wait after a failed post, in milliseconds: first `baseMs`, then twice as long each time, up to `maxMs`. Default 1,000 and 300,000. */
  readonly backoff?: { readonly baseMs?: number; readonly maxMs?: number };
  /** A run whose posts have failed for so long, in milliseconds, is given up, until `retry` is called. Default: 3 days. */
  readonly giveUpAfterMs?: number;
}

export interface DelivererDeps extends BodySource {
  readonly store: PartStore;
  readonly leaseMs: number;
  readonly onFault: (error: unknown) => void;
}

const POLL_MS = 1_000;
const MAX_POSTS = 16;
const BASE_MS = 1_000;
const MAX_MS = 300_000;
const GIVE_UP_MS = 3 * 24 * 3_600_000;
const PAGE = 200;
const EVENTS_AT_ONCE = 100;
/** Runs that are created at the same time may be listed later than newer ones, so that the last minute is listed again. */
const OVERLAP_MS = 60_000;
/** How long the delivery of an ended run is kept, since the run may be reopened. */
const DONE_TTL_MS = 30 * 24 * 3_600_000;
/** How long the delivery of an open run is kept. A run that goes on after that is posted again from its start. */
const OPEN_TTL_MS = 400 * 24 * 3_600_000;
const UNFINISHED: readonly RunStatus[] = ['pending', 'running', 'waiting', 'paused'];

/** A run of a webhook whose delivery is not done. */
interface Known {
  delivery: Delivery;
  readonly createdAt: number;
  head: number;
  hasEnded: boolean;
}

/** What this process has learnt of a webhook since it holds the lease. */
interface Watched {
  readonly runs: Map<string, Known>;
  /** All runs that were created before this time were seen. */
  seenUpTo: number;
}

/** Another process has the lease now. */
class LeaseGone extends Error {}

export class Deliverer {
  readonly #deps: DelivererDeps;
  readonly #options: DelivererOptions;
  readonly #stop = new AbortController();
  readonly #leases = new Map<string, PartLease>();
  readonly #watched = new Map<string, Watched>();
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #isOver: Promise<void>;
  #wake = (): void => {};
  #posts = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(deps: DelivererDeps, options: DelivererOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#isOver = this.#work();
  }

  /** Looks for new events at once. */
  look(): void {
    this.#wake();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake();
    await this.#isOver;
  }

  async #work(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#round();
      } catch (error) {
        if (PilotageError.is(error, 'runtime_closed')) break;
        this.#deps.onFault(error);
      }
      if (!signal.aborted) await this.#nap();
    }
    await Promise.all(this.#underWay.values());
    for (const lease of this.#leases.values()) await lease.release().catch(() => {});
  }

  #nap(): Promise<void> {
    const { pollMs = POLL_MS } = this.#options;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pollMs);
      // The timer must not keep the process alive.
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #round(): Promise<void> {
    const there = new Set<string>();
    for await (const item of this.#deps.store.list([HOOKS])) {
      const hook = storedWebhook(item);
      if (hook === undefined || this.#stop.signal.aborted) continue;
      // Another process delivers for this tenant: what was learnt here is forgotten below.
      if (!(await this.#leaseOf(hook).hold())) continue;
      there.add(keyOf(hook));
      await this.#lookAt(hook);
    }
    for (const key of this.#watched.keys()) if (!there.has(key)) this.#watched.delete(key);
  }

  #leaseOf({ tenant }: Webhook): PartLease {
    const lease = this.#leases.get(tenant) ?? new PartLease(this.#deps.store, tenant, this.#deps.leaseMs);
    this.#leases.set(tenant, lease);
    return lease;
  }

  async #lookAt(hook: Webhook): Promise<void> {
    const key = keyOf(hook);
    const watched = this.#watched.get(key) ?? { runs: new Map(), seenUpTo: hook.since };
    this.#watched.set(key, watched);
    for await (const record of this.#records(hook, watched)) await this.#see(hook, watched, record);
    for (const [run, known] of watched.runs) {
      const { delivery, head } = known;
      const { position, nextAt = 0, gaveUpAt, done = false } = delivery;
      const of = `${key}${run}`;
      if (gaveUpAt !== undefined || this.#underWay.has(of)) continue;
      const isBehind = position < head;
      if (done && !isBehind) watched.runs.delete(run);
      // The delivery of a run that has ended is stored as done.
      else if ((isBehind || known.hasEnded) && nextAt <= Date.now()) {
        const chain = this.#deliver(hook, known).catch((error: unknown) => this.#failed(watched, error));
        this.#underWay.set(
          of,
          chain.finally(() => this.#underWay.delete(of)),
        );
      }
    }
  }

  #failed(watched: Watched, error: unknown): void {
    if (this.#stop.signal.aborted) return;
    if (!(error instanceof LeaseGone)) this.#deps.onFault(error);
    watched.runs.clear();
    watched.seenUpTo = 0;
  }

  /** The runs that may have new events: the webhook's one run, or those that are new, have not ended, or are not delivered yet. */
  async *#records(hook: Webhook, watched: Watched): AsyncGenerator<RunRecord> {
    const { runtime } = this.#deps;
    const seen = new Set<string>();
    const { tenant, user, session, agent, run, since } = hook;
    if (run === undefined) {
      const query = { tenant, limit: PAGE, ...defined({ user, session, agent }) };
      const from = Math.max(since, watched.seenUpTo - OVERLAP_MS);
      for (const more of [{ since: from }, { status: UNFINISHED }]) {
        for (let after: string | undefined; ; ) {
          const page = await runtime.list({ ...query, ...more, ...defined({ after }) });
          for (const record of page) {
            const id = record.identity.run;
            watched.seenUpTo = Math.max(watched.seenUpTo, record.createdAt);
            if (!seen.has(id)) yield record;
            seen.add(id);
          }
          after = page.at(-1)?.identity.run;
          if (page.length < PAGE) break;
        }
      }
    }
    const others = [...watched.runs.keys(), ...(run === undefined ? [] : [run])];
    for (const id of new Set(others)) {
      if (seen.has(id)) continue;
      const record = await runtime.run(id).record().catch(unlessMissing);
      if (record === undefined) watched.runs.delete(id);
      else yield record;
    }
  }

  async #see(hook: Webhook, watched: Watched, record: RunRecord): Promise<void> {
    const { head, status, createdAt, identity } = record;
    const ended = hasEnded(status);
    const known = watched.runs.get(identity.run);
    if (known !== undefined) {
      known.head = head;
      known.hasEnded = ended;
      if (known.delivery.error === undefined) return;
      // `retry` may have been called, in any process.
      const now = await this.#deps.store.get(deliveriesOf(hook), identity.run);
      if (now !== undefined) known.delivery = storedDelivery(now);
      return;
    }
    const item = await this.#deps.store.get(deliveriesOf(hook), identity.run);
    const delivery = item === undefined ? { run: identity.run, position: 0 } : storedDelivery(item);
    if (delivery.done === true && delivery.position >= head) return;
    watched.runs.set(identity.run, { delivery, createdAt, head, hasEnded: ended });
  }

  /** Posts the new events of one run, in order, until a post fails. */
  async #deliver(hook: Webhook, known: Known): Promise<void> {
    const run = this.#deps.runtime.run(known.delivery.run);
    while (!this.#stop.signal.aborted) {
      const { position } = known.delivery;
      const { events, next } = await run.recorded({ from: position + 1, limit: EVENTS_AT_ONCE });
      if (next === position + 1) break;
      for (const [index, event] of events.entries()) {
        const { seq, type, occurredAt } = event;
        if (seq <= known.delivery.position) continue;
        const isLast = events[index + 1]?.seq !== seq;
        const failure = isWanted(hook, type, occurredAt) ? await this.#post(hook, run, events, index) : undefined;
        if (failure !== undefined) return this.#put(hook, known, this.#afterFailure(hook, known.delivery, failure));
        const wasPosted = events.some((each) => each.seq === seq && isWanted(hook, each.type, each.occurredAt));
        if (isLast && wasPosted) await this.#put(hook, known, { run: run.id, position: seq });
      }
      if (next - 1 > known.delivery.position) known.delivery = { run: run.id, position: next - 1 };
    }
    if (!known.hasEnded || known.delivery.position < known.head) return;
    await this.#put(hook, known, { run: run.id, position: known.delivery.position, done: true });
    if (hook.run !== undefined) await this.#retire(hook);
  }

  async #post(
    hook: Webhook,
    run: Run,
    events: Awaited<ReturnType<Run['recorded']>>['events'],
    index: number,
  ): Promise<PostFailure | undefined> {
    const event = events[index];
    const made = event && (await postedBody(this.#deps, hook, run, event));
    if (event === undefined || made === undefined) return undefined;
    const nth = index - events.findIndex(({ seq }) => seq === event.seq);
    const name = JSON.stringify([hook.tenant, hook.id, run.id, event.seq, nth]);
    const id = `msg_${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
    await this.#place();
    try {
      const { url, secret, headers = {} } = hook;
      return await post(url, { id, ...made, headers, secret }, this.#options, this.#stop.signal);
    } finally {
      this.#posts -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #place(): Promise<void> {
    const { maxPosts = MAX_POSTS } = this.#options;
    while (this.#posts >= maxPosts) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#posts += 1;
  }

  #afterFailure(hook: Webhook, delivery: Delivery, { why, isGone, retryAfterMs = 0 }: PostFailure): Delivery {
    const { backoff: { baseMs = BASE_MS, maxMs = MAX_MS } = {}, giveUpAfterMs = GIVE_UP_MS } = this.#options;
    const now = Date.now();
    const { run, position, attempts: before = 0, failingSince = now } = delivery;
    const attempts = before + 1;
    const failed: Delivery = { run, position, attempts, failingSince, error: why };
    if (isGone || now - failingSince >= giveUpAfterMs) {
      const words = `The webhook ${hook.id} of ${hook.tenant} gave run ${run} up behind position ${position}, after ${attempts} posts: ${why}`;
      this.#deps.onFault(new PilotageError('url_failed', words));
      return { ...failed, gaveUpAt: now };
    }
    const waitMs = Math.min(maxMs, baseMs * 2 ** Math.min(before, 30));
    return { ...failed, nextAt: now + Math.max(retryAfterMs, waitMs * (0.5 + Math.random() / 2)) };
  }

  /** Moves a webhook whose one run has ended to where it can be read and is no longer looked at. */
  async #retire(hook: Webhook): Promise<void> {
    const { tenant, id: key } = hook;
    const value = asJson(hook);
    const there = { namespace: hooksOf(tenant), key };
    // A webhook that was changed meanwhile stays, since it may be for another run.
    const isSame = jsonEquals((await this.#deps.store.get(there.namespace, key))?.value ?? null, value);
    if (!isSame) return;
    await this.#deps.store.write(
      [there, { namespace: endedOf(tenant), key, value, ttlMs: DONE_TTL_MS }],
      this.#leaseOf(hook).seen,
    );
  }

  async #put(hook: Webhook, known: Known, delivery: Delivery): Promise<void> {
    const ttlMs = delivery.done === true ? DONE_TTL_MS : OPEN_TTL_MS;
    const write: StoreWrite = {
      namespace: deliveriesOf(hook),
      key: delivery.run,
      value: deliveryValue(delivery),
      ttlMs,
    };
    if (!(await this.#deps.store.write([write], this.#leaseOf(hook).seen))) throw new LeaseGone('The lease is gone.');
    known.delivery = delivery;
  }
}

function keyOf({ tenant, id }: Webhook): string {
  return JSON.stringify([tenant, id]);
}

function unlessMissing(error: unknown): undefined {
  if (!PilotageError.is(error, 'run_not_found'))
    throw error instanceof Error ? error : new Error(describeThrown(error));
}
