/**
 * Hears what passes in runs that are read here and driven elsewhere, and tells it to their readers as the driver would. The first reader of a run
 * asks for it, and it is asked for again and again as long as there is one.
 */
import type { Clock } from '#core';
import { hasEnded, type Journal, type RunRecord } from '#journal';
import type { NoticeHub } from '../loop/notices.ts';
import { Incoming } from './passing-batch.ts';

export interface PassingInDeps {
  readonly journal: Pick<Journal, 'passing' | 'get' | 'watch'>;
  readonly clock: Clock;
  readonly hub: NoticeHub;
  /** This process drives the run now, and tells its readers itself. */
  readonly drives: (run: string) => boolean;
}

/** So long a run is told of when its readers here have died. */
const WANTED_MS = 15_000;
const RENEW_MS = 5_000;

export class PassingIn {
  readonly #deps: PassingInDeps;
  readonly #inlets = new Map<string, Inlet>();
  #cancelRenewal: (() => void) | undefined;
  #closed = false;

  constructor(deps: PassingInDeps) {
    this.#deps = deps;
  }

  /** The run is read here. */
  begin(run: string): void {
    if (this.#closed || this.#inlets.has(run) || this.#deps.drives(run)) return;
    const inlet = new Inlet(this.#deps, run, () => void this.#ask([inlet]));
    this.#inlets.set(run, inlet);
    inlet.open();
    void this.#ask([inlet]);
    this.#arm();
  }

  /** Nobody reads it here any more. */
  end(run: string): void {
    const inlet = this.#inlets.get(run);
    if (inlet === undefined) return;
    this.#drop(inlet);
    // Whoever comes later gets it from its beginning.
    this.#deps.hub.forget(run);
  }

  close(): void {
    this.#closed = true;
    for (const inlet of this.#inlets.values()) this.#drop(inlet);
  }

  #drop(inlet: Inlet): void {
    inlet.close();
    this.#inlets.delete(inlet.run);
    if (this.#inlets.size > 0) return;
    this.#cancelRenewal?.();
    this.#cancelRenewal = undefined;
  }

  #arm(): void {
    this.#cancelRenewal ??= this.#deps.clock.after(
      RENEW_MS,
      () => {
        this.#cancelRenewal = undefined;
        void this.#ask([...this.#inlets.values()]);
        if (this.#inlets.size > 0) this.#arm();
      },
      { holds: false },
    );
  }

  /** What fails is asked for again with the next renewal; the text comes with its step's decision in any case. */
  async #ask(inlets: readonly Inlet[]): Promise<void> {
    for (const inlet of inlets) if (this.#deps.drives(inlet.run)) this.#drop(inlet);
    await Promise.all(inlets.map((inlet) => inlet.look()));
    const runs = inlets.filter(({ isOpen, isUnderWay }) => isOpen && isUnderWay).map(({ run }) => run);
    if (runs.length > 0) await this.#deps.journal.passing.want(runs, WANTED_MS).catch(() => undefined);
    await Promise.all(inlets.map((inlet) => inlet.read()));
  }
}

/** Before it is looked at again. */
function isDueSoon({ wakeAt = 0, readAt, waits }: RunRecord): boolean {
  return waits !== true && wakeAt !== null && wakeAt <= readAt + RENEW_MS;
}

/** One run. */
class Inlet {
  readonly run: string;
  readonly #deps: PassingInDeps;
  readonly #incoming = new Incoming();
  readonly #onNews: () => void;
  #stops: readonly (() => void)[] = [];
  #after = 0;
  #isReading = false;
  #hasNews = false;
  isOpen = true;
  /** Somebody drives it, or will soon. */
  isUnderWay = false;

  /** @param onNews called when a run that was not under way may be so now. */
  constructor(deps: PassingInDeps, run: string, onNews: () => void) {
    this.#deps = deps;
    this.run = run;
    this.#onNews = onNews;
  }

  open(): void {
    const { journal } = this.#deps;
    try {
      this.#stops = [
        journal.passing.watch(this.run, () => void this.read()),
        journal.watch(this.run, () => void (this.isUnderWay || this.#onNews())),
      ];
    } catch {
      // The journal is closed. Whoever reads the run is told so.
    }
  }

  close(): void {
    this.isOpen = false;
    for (const stop of this.#stops) stop();
  }

  async look(): Promise<void> {
    if (!this.isOpen) return;
    const record = await this.#deps.journal.get(this.run).catch(() => undefined);
    this.isUnderWay =
      record !== undefined && !hasEnded(record.status) && (record.lease !== undefined || isDueSoon(record));
  }

  async read(): Promise<void> {
    this.#hasNews = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#hasNews && this.isOpen) {
      this.#hasNews = false;
      const rows = await this.#deps.journal.passing.read(this.run, this.#after).catch(() => []);
      for (const { number, fence, value } of rows) {
        // What its own driver says here is not mixed with what another one has said.
        if (!this.isOpen || this.#deps.drives(this.run)) break;
        this.#after = number;
        for (const notice of this.#incoming.accept(fence, value)) this.#deps.hub.tell(this.run, notice);
      }
    }
    this.#isReading = false;
  }
}
