/**
 * Tells readers in other processes what passes in the runs that are driven here. As long as nobody reads from elsewhere, nothing is written.
 * Nobody waits for what is written, and what cannot be written is said once more with the next row.
 */
import { type Clock, type Redaction, steadyMs } from '#core';
import type { Journal, NewPassing } from '#journal';
import type { NoticeHub } from '../loop/notices.ts';
import { OutgoingPassing } from './passing-batch.ts';

export interface PassingOutDeps {
  readonly journal: Pick<Journal, 'passing'>;
  readonly clock: Clock;
  readonly hub: NoticeHub;
  readonly redaction: Redaction;
  /** That of the lease under which the run is driven here. `undefined`: it is not. */
  readonly fenceOf: (run: string) => number | undefined;
}

interface Outlet {
  readonly run: string;
  readonly fence: number;
  readonly outgoing: OutgoingPassing;
  close(): void;
}

/** What is said within this time is one row. */
const GATHER_MS = 100;
const KNOWN_WITHIN_MS = 250;

export class PassingOut {
  readonly #deps: PassingOutDeps;
  /** Until when runs are read elsewhere, by the steady clock. */
  #readUntil: ReadonlyMap<string, number> = new Map();
  readonly #outlets = new Map<string, Outlet>();
  /** Outlets of runs that are not driven here any more, or not read: what is there of them is to go. */
  #left: Outlet[] = [];
  #opening: Promise<void> | undefined;
  #isKnown = false;
  #unwatch = (): void => {};
  #isLoading = false;
  #hasNews = false;
  #isWriting = false;
  #cancelFlush: (() => void) | undefined;

  constructor(deps: PassingOutDeps) {
    this.#deps = deps;
  }

  /** Somebody reads runs from elsewhere, or did so lately, so that any run may be read late. */
  get isReadElsewhere(): boolean {
    return this.#readUntil.size > 0;
  }

  /**
   * Hears from now on which runs are read. The first step that is asked for here can be streamed when that is known, so whoever is about to
   * drive a run waits for it, but not long. `undefined`: it is known.
   */
  open(): Promise<void> | undefined {
    this.#opening ??= this.#open();
    return this.#isKnown ? undefined : this.#opening;
  }

  async #open(): Promise<void> {
    const { journal, clock } = this.#deps;
    const late = Promise.withResolvers<void>();
    const cancel = clock.after(KNOWN_WITHIN_MS, late.resolve, { holds: false });
    try {
      this.#unwatch = journal.passing.watchWanted(() => void this.#load());
      await Promise.race([this.#load(), late.promise]);
    } catch {
      // The journal is closed: whoever writes to it is told so.
    } finally {
      this.#isKnown = true;
      cancel();
    }
  }

  /** The run is driven here from now on. */
  begins(run: string): void {
    if (this.#isRead(run)) this.#openOutlet(run);
  }

  /** What is being written is written, and nothing more. */
  close(): void {
    this.#opening ??= Promise.resolve();
    this.#unwatch();
    for (const outlet of this.#outlets.values()) this.#leave(outlet);
    this.#cancelFlush?.();
    void this.#flush();
  }

  async #load(): Promise<void> {
    this.#hasNews = true;
    if (this.#isLoading) return;
    this.#isLoading = true;
    while (this.#hasNews) {
      this.#hasNews = false;
      // What cannot be read now is heard of again: readers say it again and again.
      const runs = await this.#deps.journal.passing.wanted().catch(() => undefined);
      if (runs === undefined) continue;
      const now = steadyMs(this.#deps.clock);
      this.#readUntil = new Map(runs.map(({ run, leftMs }) => [run, now + leftMs]));
      for (const [run, until] of this.#readUntil) if (until > now) this.#openOutlet(run);
    }
    this.#isLoading = false;
  }

  #isRead(run: string): boolean {
    return (this.#readUntil.get(run) ?? 0) > steadyMs(this.#deps.clock);
  }

  #openOutlet(run: string): void {
    const { hub, redaction, fenceOf } = this.#deps;
    const fence = fenceOf(run);
    if (fence === undefined || this.#outlets.has(run)) return;
    const outgoing = new OutgoingPassing((text) => redaction.leaves(text));
    let unlisten = (): void => {};
    const outlet: Outlet = { run, fence, outgoing, close: () => unlisten() };
    this.#outlets.set(run, outlet);
    unlisten = hub.listen(
      run,
      (notice) => {
        outgoing.hear(notice);
        if (notice.type === 'exit') this.#leave(outlet);
        else if (outgoing.isDue) this.#arm();
      },
      true,
      false,
    );
  }

  #leave(outlet: Outlet): void {
    outlet.close();
    this.#outlets.delete(outlet.run);
    this.#left.push(outlet);
    this.#arm();
  }

  #arm(): void {
    if (this.#cancelFlush !== undefined || this.#isWriting) return;
    this.#cancelFlush = this.#deps.clock.after(GATHER_MS, () => void this.#flush(), { holds: false });
  }

  async #flush(): Promise<void> {
    this.#cancelFlush = undefined;
    if (this.#isWriting) return;
    for (const outlet of this.#outlets.values()) {
      if (this.#isRead(outlet.run)) continue;
      outlet.outgoing.end();
      this.#leave(outlet);
    }
    const { hub, journal } = this.#deps;
    const due = [...this.#outlets.values(), ...this.#left].filter(({ outgoing }) => outgoing.isDue);
    const rows = due.map(({ run, fence, outgoing }): NewPassing => ({ run, fence, ...outgoing.next(hub.saidOf(run)) }));
    this.#left = [];
    if (rows.length === 0) return;
    this.#isWriting = true;
    try {
      await journal.passing.put(rows);
    } catch {
      for (const { outgoing } of due) outgoing.failed();
    }
    this.#isWriting = false;
    if (this.#left.length > 0 || due.some(({ outgoing }) => outgoing.isDue)) this.#arm();
  }
}
