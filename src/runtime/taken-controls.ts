/**
 * Waits until runs have taken controls, without a look at what they did before. Those who wait for one run read it together, however many they are:
 * each entry once, and one look at a time.
 */
import { type Control, type Entry, PilotageError } from '#core';
import type { Journal } from '#journal';
import { isVerdict } from '../loop/answers.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { Notice } from '../loop/notices.ts';
import { answerToEnded } from './send-control.ts';

interface Wait {
  /** @throws why the control was refused, `run_ended`, or why this process let go of the run. */
  readonly done: Promise<void>;
  stop(): void;
}

type Waiter = Pick<PromiseWithResolvers<void>, 'resolve' | 'reject'> & {
  readonly control: string;
  /** No entry up to here is about it: the run may have ended and been opened again. */
  readonly head: number;
};

type Sources = Pick<DriverDeps, 'journal' | 'hub'>;

export class TakenControls {
  readonly #sources: Sources;
  readonly #tails = new Map<string, Tail>();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  /** Listens from now on for the entry that takes the control. @param head entries up to here cannot have taken it. */
  until(run: string, control: Control, head: number): Wait {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { control: control.id, head, resolve, reject };
    const tail = this.#tails.get(run) ?? new Tail(this.#sources, run, head);
    this.#tails.set(run, tail);
    tail.add(waiter);
    const { journal } = this.#sources;
    const done = promise.catch(async (error: unknown) => {
      const isLate = isVerdict(control) && PilotageError.is(error, 'run_ended');
      throw isLate ? await answerToEnded(journal, run, control, error) : error;
    });
    // The sender awaits the control only when it is stored.
    done.catch(() => {});
    const stop = (): void => {
      if (tail.delete(waiter) && this.#tails.get(run) === tail) this.#tails.delete(run);
    };
    return { done, stop };
  }
}

/** What comes in a run, for those who wait for it. */
class Tail {
  readonly #journal: Journal;
  readonly #run: string;
  readonly #waiters = new Set<Waiter>();
  readonly #stops: readonly (() => void)[];
  /** Everything up to here was looked at. */
  #seen: number;
  /** The driver here tells every entry, and nothing that others wrote before is missing. */
  #isTold = false;
  #isLooking = false;
  /** There may be more than the last look has read. */
  #hasNews = false;

  constructor({ journal, hub }: Sources, run: string, head: number) {
    this.#journal = journal;
    this.#run = run;
    this.#seen = head;
    const unlisten = hub.listen(run, (notice) => this.#hear(notice), false);
    const unwatch = journal.watch(run, () => {
      if (!this.#isTold) this.#lookAgain();
    });
    this.#stops = [unlisten, unwatch];
  }

  /** Others may have seen more by now than it has. */
  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
    if (waiter.head >= this.#seen) return;
    this.#seen = waiter.head;
    this.#lookAgain();
  }

  /** @returns true when nobody waits any more. */
  delete(waiter: Waiter): boolean {
    this.#waiters.delete(waiter);
    if (this.#waiters.size > 0) return false;
    for (const stop of this.#stops) stop();
    return true;
  }

  #hear(notice: Notice): void {
    if (notice.type === 'entry') {
      // Another process wrote what is missing before this one took over.
      this.#isTold = notice.entry.seq <= this.#seen + 1;
      if (this.#isTold) this.#see(notice.entry);
      else this.#lookAgain();
    } else if (notice.type === 'exit') {
      this.#isTold = false;
      if (notice.error === undefined) this.#lookAgain();
      else this.#reject(notice.error);
    }
  }

  #see(entry: Entry): void {
    if (entry.seq === this.#seen + 1) this.#seen = entry.seq;
    for (const { control, head, resolve, reject } of this.#waiters) {
      if (entry.seq <= head) continue;
      if (entry.kind === 'finished' || entry.kind === 'failed')
        reject(new PilotageError('run_ended', `The run ${this.#run} ended before it took the control.`));
      else if (entry.kind === 'control' && entry.control.id === control) {
        if (entry.error === undefined) resolve();
        else reject(PilotageError.fromData(entry.error));
      }
    }
  }

  #reject(error: unknown): void {
    for (const { reject } of this.#waiters) reject(error);
  }

  #lookAgain(): void {
    this.#hasNews = true;
    if (!this.#isLooking) void this.#looking();
  }

  async #looking(): Promise<void> {
    this.#isLooking = true;
    try {
      while (this.#hasNews && this.#waiters.size > 0) {
        this.#hasNews = false;
        for (const entry of await this.#journal.read(this.#run, this.#seen + 1)) this.#see(entry);
      }
    } catch (error) {
      this.#reject(error);
    } finally {
      this.#isLooking = false;
    }
  }
}
