/** Looks now and then whether the journal gives runs, as one that takes no writes does not, and tells when it is lost, and when it is back: once each. */
import { PilotageError } from '#core';
import type { Journal } from '#journal';

const LOOK_MS = 2_000;
const LOOK_WHILE_LOST_MS = 500;
/** What has not answered for so long is away, whatever becomes of the question. */
const ANSWER_MS = 3_000;
/** A claim of what no run is: the journal has to do what it does for a worker, and nothing is found. */
const NOTHING = { owner: 'nobody', leaseMs: 1_000, agents: [], limit: 1 };

export interface JournalNews {
  /** It has answered for the first time. */
  there(): void;
  lost(error: unknown): void;
  back(awayMs: number): void;
}

export class JournalWatch {
  readonly #journal: Pick<Journal, 'claimParked'>;
  readonly #news: JournalNews;
  #state: 'unknown' | 'there' | 'lost' = 'unknown';
  #wasThere = false;
  #lostAt = 0;
  #looking: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  roundTripMs: number | undefined;

  constructor(journal: Pick<Journal, 'claimParked'>, news: JournalNews) {
    this.#journal = journal;
    this.#news = news;
  }

  get isThere(): boolean {
    return this.#state === 'there';
  }

  /** At once, if it does not look just now. @returns whether the journal has answered. */
  look(): Promise<boolean> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      if (this.#stopped) return;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.look(), this.isThere ? LOOK_MS : LOOK_WHILE_LOST_MS);
    });
    return this.#looking;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<boolean> {
    const askedAt = performance.now();
    const late = setTimeout(() => this.#lost(NO_ANSWER), ANSWER_MS);
    try {
      await this.#journal.claimParked(NOTHING);
      this.roundTripMs = performance.now() - askedAt;
      this.#there();
      return true;
    } catch (error) {
      this.#lost(error);
      return false;
    } finally {
      clearTimeout(late);
    }
  }

  #there(): void {
    const before = this.#state;
    this.#state = 'there';
    if (before === 'lost') this.#news.back(performance.now() - this.#lostAt);
    if (!this.#wasThere) this.#news.there();
    this.#wasThere = true;
  }

  #lost(error: unknown): void {
    if (this.#state === 'lost') return;
    this.#state = 'lost';
    this.#lostAt = performance.now();
    this.#news.lost(error);
  }
}

const NO_ANSWER = new PilotageError(
  'journal_unavailable',
  `The journal has not answered for ${ANSWER_MS / 1_000} s. Check its server, and the way to it.`,
);
