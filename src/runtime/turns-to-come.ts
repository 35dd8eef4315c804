/** Turns of sessions that wait for the turns before them: whoever drives a process of theirs hears when their turn has come. */
import type { Scope } from '#core';
import type { Journal } from '#journal';

export class TurnsToCome {
  readonly #journal: Pick<Journal, 'watch' | 'sessions'>;
  readonly #wake: (run: string) => void;
  #isStopped = false;
  /** How to look away from each. */
  readonly #watched = new Map<string, () => void>();

  /** @param wake looks whether the turn of the run has come. */
  constructor(journal: Pick<Journal, 'watch' | 'sessions'>, wake: (run: string) => void) {
    this.#journal = journal;
    this.#wake = wake;
  }

  /** A run was stored that waits, perhaps: for a turn whose process may have died. */
  async expect(run: string, scope: Scope): Promise<void> {
    if (this.#isStopped) return;
    const unwatch = this.#watched.get(run) ?? this.#journal.watch(run, () => this.#wake(run));
    this.#watched.set(run, unwatch);
    this.#wake(run);
    await this.wakeLive(scope);
  }

  /** Its turn has come, or it has ended. */
  forget(run: string): void {
    this.#watched.get(run)?.();
    this.#watched.delete(run);
  }

  /** Whichever turn of the session is to be under way now: the one before it has ended here, or its process may have died. */
  async wakeLive(scope: Scope): Promise<void> {
    const { live } = (await this.#journal.sessions.get(scope)) ?? {};
    if (live !== undefined) this.#wake(live.run);
  }

  stop(): void {
    this.#isStopped = true;
    for (const run of this.#watched.keys()) this.forget(run);
  }
}
