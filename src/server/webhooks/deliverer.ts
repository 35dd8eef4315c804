/**
 * Posts the new events of webhooks' runs: the events of one run in order, and many runs at once. It hears of news of runs, and finds what it has not heard of by
 * looking at all that is unfinished: when it begins, when any run may have news, and now and then.
 */
import { asJson, defined, jsonEquals, PilotageError, type Scope } from '#core';
import { hasEnded, type RunRecord, type RunStatus } from '#journal';
import { REOPENED } from '#runtime';
import { type Hooked, type HookRun, KnownHooks, type Tenant } from './known-hooks.ts';
import { Places } from './places.ts';
import { type DeliveryDeps, type DeliveryOptions, type NextTurn, RunDelivery } from './run-delivery.ts';
import {
  type Delivery,
  deliveriesOf,
  HOOKS,
  KEPT_MS,
  keyOf,
  storedDelivery,
  storedWebhook,
  type Webhook,
} from './subscription.ts';

export interface DelivererOptions extends DeliveryOptions {
  /** How often to look for what was not heard of, since news may be lost, in milliseconds. Default 30,000. */
  readonly pollMs?: number;
  /** How many posts are under way at once. Default 64. */
  readonly maxPosts?: number;
  /** How many of them for one tenant. Default 16. */
  readonly maxPostsPerTenant?: number;
}

const POLL_MS = 30_000;
const MAX_POSTS = 64;
const MAX_POSTS_OF_TENANT = 16;
const PAGE = 200;
/** Looks begin so far apart at least, and take at most a tenth of the time. */
const LOOK_MS = 1_000;
const REST = 9;
/** Runs that are created at the same time may be listed later than newer ones, so that the last minute is listed again. */
const OVERLAP_MS = 60_000;
/** The delivery of an ended run is known for a day longer than it is looked at. */
const LOOKED_AT_MS = KEPT_MS - 24 * 3_600_000;
/** After an error other than a failed post, such as one of the store; twice as long each time. */
const FAULT_MS = 1_000;
const MOST_FAULTS = 8;
const MOST_SCOPES = 10_000;
const UNFINISHED: readonly RunStatus[] = ['pending', 'running', 'waiting', 'paused'];

export class Deliverer {
  readonly #deps: Omit<DeliveryDeps, 'note'>;
  readonly #options: DelivererOptions;
  readonly #delivery: RunDelivery;
  readonly #places: Places;
  readonly #stop = new AbortController();
  readonly #hooks = new KnownHooks();
  readonly #scopes = new Map<string, Scope>();
  readonly #underWay = new Set<Promise<void>>();
  /** Runs with news that were not looked at yet. */
  readonly #news = new Set<string>();
  readonly #unwatch: readonly (() => void)[];
  readonly #isOver: Promise<void>;
  #hearing: Promise<void> | undefined;
  #isLoaded = false;
  /** Any run may have news. */
  #isAsked = true;
  #hooksChanged = true;
  #wake = (): void => {};

  constructor(deps: Omit<DeliveryDeps, 'note'>, options: DelivererOptions) {
    this.#deps = deps;
    this.#options = options;
    const { maxPosts: all = MAX_POSTS, maxPostsPerTenant: ofTenant = MAX_POSTS_OF_TENANT } = options;
    this.#places = new Places({ all, ofTenant });
    const note = this.#places.note.bind(this.#places);
    this.#delivery = new RunDelivery({ ...deps, note }, options, this.#stop.signal);
    this.#unwatch = [
      deps.store.watchRuns((run) => this.#hear(run)),
      deps.store.watch(HOOKS, () => {
        this.#hooksChanged = true;
        this.#wake();
      }),
    ];
    this.#isOver = this.#work();
  }

  /** A webhook was stored in this process. */
  add(hook: Webhook): void {
    if (!this.#stop.signal.aborted) this.#keep(hook);
  }

  /** Tries runs of a webhook again that were given up, or wait for a retry. */
  retry(of: Pick<Webhook, 'tenant' | 'id'>, runs: readonly string[]): void {
    const hooked = this.#hooks.get(of);
    if (hooked === undefined) return;
    for (const run of runs) {
      const watched = this.#watched(hooked, run);
      watched.gaveUp = false;
      this.#unplan(watched);
      this.#start(hooked, watched);
    }
  }

  async stop(): Promise<void> {
    for (const unwatch of this.#unwatch) unwatch();
    this.#stop.abort();
    this.#places.close();
    this.#wake();
    for (const { runs } of this.#hooks.all) for (const watched of runs.values()) this.#unplan(watched);
    await this.#isOver;
    await this.#hearing;
    await Promise.all(this.#underWay);
  }

  #hear(run: string | undefined): void {
    if (this.#stop.signal.aborted) return;
    if (run === undefined) {
      this.#isAsked = true;
      this.#wake();
      return;
    }
    this.#news.add(run);
    if (this.#isLoaded)
      this.#hearing ??= this.#told().finally(() => {
        this.#hearing = undefined;
        if (this.#news.size > 0) this.#hear(this.#news.values().next().value);
      });
  }

  /** Looks at the runs that have news. */
  async #told(): Promise<void> {
    for (const run of this.#news) {
      if (this.#stop.signal.aborted) return this.#news.clear();
      this.#news.delete(run);
      if (this.#hooks.size === 0) continue;
      await this.#seeRun(run).catch((error: unknown) => this.#fault(error));
    }
  }

  async #seeRun(run: string): Promise<void> {
    const scope = this.#scopes.get(run);
    const isWatched = scope !== undefined && [...this.#hooks.of({ ...scope, run })].length > 0;
    if (scope !== undefined && !isWatched) return;
    const hasAgent = scope === undefined || [...this.#hooks.of({ ...scope, run })].some(({ hook }) => hook.agent);
    // The agent of a run may change, its scope does not.
    const record = hasAgent ? await this.#recordOf(run) : undefined;
    const of = record?.identity ?? (scope && { ...scope, run });
    if (of === undefined) return;
    this.#remember(run, of);
    for (const hooked of this.#hooks.of(of, record?.agent)) {
      const watched = this.#watched(hooked, run);
      // A run that waits for a retry waits on. Another process that had the run may have let go of it.
      const isWaiting = watched.timer !== undefined && watched.held === undefined;
      if (!isWaiting && !watched.gaveUp) this.#start(hooked, watched);
    }
  }

  #recordOf(run: string): Promise<RunRecord | undefined> {
    return this.#deps.runtime
      .run(run)
      .record()
      .catch((error: unknown) => {
        if (PilotageError.is(error, 'run_not_found')) return undefined;
        throw error;
      });
  }

  #remember(run: string, { tenant, user, session }: Scope): void {
    if (this.#scopes.size >= MOST_SCOPES) this.#scopes.clear();
    this.#scopes.set(run, { tenant, user, session });
  }

  #watched({ runs }: Hooked, run: string): HookRun {
    const watched = runs.get(run) ?? { run, readTo: 0, isUnderWay: false, hasNews: false, gaveUp: false, faults: 0 };
    runs.set(run, watched);
    return watched;
  }

  #keep(hook: Webhook): void {
    const before = this.#hooks.get(hook);
    if (before !== undefined && jsonEquals(asJson(before.hook), asJson(hook))) return;
    if (before !== undefined) this.#drop(before);
    const hooked = this.#hooks.add(hook);
    if (hook.run !== undefined) this.#start(hooked, this.#watched(hooked, hook.run));
  }

  #drop(hooked: Hooked): void {
    if (!this.#hooks.remove(hooked)) return;
    this.#places.note(hooked.hook, false);
    for (const watched of hooked.runs.values()) this.#unplan(watched);
  }

  #start(hooked: Hooked, watched: HookRun): void {
    if (this.#stop.signal.aborted) return;
    watched.hasNews = true;
    if (watched.isUnderWay) return;
    watched.isUnderWay = true;
    this.#unplan(watched);
    const chain = this.#deliver(hooked, watched).finally(() => this.#underWay.delete(chain));
    this.#underWay.add(chain);
  }

  /** Delivers the run, turn by turn with others, as long as there may be more. A run that only waits has no place. */
  async #deliver(hooked: Hooked, watched: HookRun): Promise<void> {
    const { signal } = this.#stop;
    while (watched.hasNews && !signal.aborted && this.#hooks.get(hooked.hook) === hooked) {
      const leave = await this.#places.take(hooked.hook);
      let next: NextTurn;
      try {
        if (signal.aborted) break;
        watched.hasNews = false;
        next = await this.#delivery.turn(hooked.hook, watched);
        watched.faults = 0;
      } catch (error) {
        if (signal.aborted) break;
        this.#fault(error);
        watched.faults += 1;
        next = { kind: 'later', ms: FAULT_MS * 2 ** Math.min(watched.faults, MOST_FAULTS) };
      } finally {
        leave();
      }
      this.#goOn(hooked, watched, next);
    }
    // Without a turn of the event loop since it was looked for news.
    watched.isUnderWay = false;
  }

  #goOn(hooked: Hooked, watched: HookRun, next: NextTurn): void {
    if (next.kind === 'more') watched.hasNews = true;
    else if (next.kind === 'idle') watched.gaveUp = next.gaveUp === true;
    else if (next.kind === 'later') {
      watched.hasNews = false;
      watched.timer = setTimeout(() => {
        watched.timer = undefined;
        this.#start(hooked, watched);
      }, next.ms).unref();
    } else if (next.kind === 'over') {
      // News that came meanwhile may be of a run that was opened again.
      if (watched.hasNews) return;
      hooked.runs.delete(watched.run);
      hooked.done.set(watched.run, { position: watched.readTo, ...defined({ begun: watched.begun }) });
    } else if (this.#hooks.get(hooked.hook) === hooked) {
      this.#drop(hooked);
      if (next.hook !== undefined) this.#keep(next.hook);
      // Its other runs are looked for.
      this.#hooksChanged = true;
      this.#wake();
    }
  }

  #unplan(watched: HookRun): void {
    clearTimeout(watched.timer);
    watched.timer = undefined;
  }

  #fault(error: unknown): void {
    if (!this.#stop.signal.aborted && !PilotageError.is(error, 'runtime_closed')) this.#deps.onFault(error);
  }

  /** Looks at all that is unfinished, again and again. */
  async #work(): Promise<void> {
    const { signal } = this.#stop;
    const { pollMs = POLL_MS } = this.#options;
    while (!signal.aborted) {
      const since = performance.now();
      const isEvery = this.#isAsked || !this.#hooksChanged;
      this.#isAsked = false;
      this.#hooksChanged = false;
      try {
        await this.#lookAround(isEvery);
      } catch (error) {
        if (PilotageError.is(error, 'runtime_closed')) return;
        this.#fault(error);
      }
      const tookMs = performance.now() - since;
      await this.#nap(Math.max(LOOK_MS, tookMs * REST), () => false);
      await this.#nap(pollMs, () => this.#isAsked || this.#hooksChanged);
    }
  }

  /** Until the time is over, it is woken and `isDone`, or it is stopped. The timer does not keep the process alive. */
  #nap(ms: number, isDone: () => boolean): Promise<void> {
    const { signal } = this.#stop;
    if (isDone() || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.#wake = () => {
        if (!isDone() && !signal.aborted) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** @param isEvery looks at the runs of all webhooks, and not only of those that were not known here. */
  async #lookAround(isEvery: boolean): Promise<void> {
    const there = new Set<string>();
    const before = this.#hooks.all;
    for await (const item of this.#deps.store.list([HOOKS])) {
      const hook = storedWebhook(item);
      if (hook === undefined) continue;
      if (this.#stop.signal.aborted) return;
      there.add(keyOf(hook));
      this.#keep(hook);
    }
    for (const hooked of before) if (!there.has(keyOf(hooked.hook))) this.#drop(hooked);
    this.#isLoaded = true;
    const [told] = this.#news;
    if (told !== undefined) this.#hear(told);
    for (const [name, tenant] of this.#hooks.tenants) {
      const hooks = [...tenant.wide.values(), ...[...tenant.ofRun.values()].flatMap((each) => [...each.values()])];
      if (isEvery || hooks.some(({ isNew }) => isNew)) await this.#lookAt(name, tenant, hooks);
    }
  }

  async #lookAt(name: string, tenant: Tenant, hooks: readonly Hooked[]): Promise<void> {
    const kept = new Map<Hooked, ReadonlyMap<string, Delivery>>();
    for (const hooked of hooks) {
      if (hooked.isNew && hooked.hook.run === undefined) kept.set(hooked, await this.#deliveriesOf(hooked.hook));
      hooked.isNew = false;
    }
    const seen = new Set<string>();
    if (tenant.wide.size > 0) {
      for await (const record of this.#records(name, tenant)) {
        seen.add(record.identity.run);
        for (const hooked of this.#hooks.of(record.identity, record.agent)) this.#see(hooked, record, kept.get(hooked));
      }
    }
    for (const hooked of hooks) {
      for (const watched of hooked.runs.values()) if (!seen.has(watched.run)) await this.#lookAgain(hooked, watched);
      for (const run of hooked.done.keys()) if (!seen.has(run)) hooked.done.delete(run);
    }
  }

  /** At a run that is not listed: it has ended, or its webhook is for it alone. */
  async #lookAgain(hooked: Hooked, watched: HookRun): Promise<void> {
    if (this.#stop.signal.aborted || watched.timer !== undefined) return;
    // Another process may have called `retry`.
    if (watched.isUnderWay || watched.gaveUp) return this.#start(hooked, watched);
    const record = await this.#recordOf(watched.run);
    if (record === undefined) hooked.runs.delete(watched.run);
    else this.#see(hooked, record);
  }

  async #deliveriesOf(hook: Webhook): Promise<ReadonlyMap<string, Delivery>> {
    const found = new Map<string, Delivery>();
    for await (const item of this.#deps.store.list(deliveriesOf(hook))) found.set(item.key, storedDelivery(item));
    return found;
  }

  /** @param kept how far its runs are delivered, of a webhook that was not known here before. */
  #see(
    hooked: Hooked,
    { identity, status, head, createdAt, updatedAt }: RunRecord,
    kept?: ReadonlyMap<string, Delivery>,
  ): void {
    const { run } = identity;
    const now = this.#deps.store.now();
    const watched = hooked.runs.get(run);
    const delivery = kept?.get(run);
    if (watched === undefined && hasEnded(status)) {
      const wantedFrom = Math.max(Math.min(hooked.hook.since, now) - OVERLAP_MS, now - LOOKED_AT_MS);
      const isOld = delivery === undefined && updatedAt < wantedFrom;
      const { position = 0, begun = createdAt } = (delivery?.done === true ? delivery : hooked.done.get(run)) ?? {};
      const isDone = position >= head && begun === createdAt;
      if (isOld || isDone) return;
    }
    const known = watched ?? this.#watched(hooked, run);
    if (known.timer !== undefined) return;
    if (known.readTo < head || hasEnded(status)) this.#start(hooked, known);
  }

  /** The runs of a tenant that may have new events: those that are new, have not ended, or have gone on after their end. */
  async *#records(tenant: string, looked: Tenant): AsyncGenerator<RunRecord> {
    const { runtime } = this.#deps;
    // The clock may have been set back.
    const since = Math.min(looked.seenUpTo, this.#deps.store.now()) - OVERLAP_MS;
    let newest = looked.seenUpTo;
    const seen = new Set<string>();
    for (const more of [{ since: Math.max(0, since) }, { status: UNFINISHED }]) {
      for (let after: string | undefined; ; ) {
        const page = await runtime.list({ tenant, limit: PAGE, ...more, ...defined({ after }) });
        for (const record of page) {
          newest = Math.max(newest, record.createdAt);
          if (seen.has(record.identity.run)) continue;
          seen.add(record.identity.run);
          yield record;
        }
        after = page.at(-1)?.identity.run;
        if (page.length < PAGE) break;
      }
    }
    looked.seenUpTo = Math.max(looked.seenUpTo, newest);
    for await (const { key: run } of this.#deps.store.list([REOPENED, tenant])) {
      const record = seen.has(run) ? undefined : await this.#recordOf(run);
      if (record !== undefined) yield record;
    }
  }
}
