/** What this process was told about questions that leaves no trace in a run: that nobody wants to answer now, or that an answer did not do. */
export class Heard {
  readonly #calls = new Map<string, Set<HeardCall>>();

  /** For an open call of the run, until it leaves. */
  of(run: string): HeardCall {
    const calls = this.#calls.get(run) ?? new Set();
    this.#calls.set(run, calls);
    const hearing = new HeardCall(() => {
      calls.delete(hearing);
      if (calls.size === 0) this.#calls.delete(run);
    });
    calls.add(hearing);
    return hearing;
  }

  /** @param refused why the answer did not do. Absent: nobody wants to answer now. */
  tell(run: string, token: string, refused?: string): void {
    for (const hearing of this.#calls.get(run) ?? []) hearing.tell(token, refused);
  }
}

export class HeardCall {
  readonly later: Set<string> = new Set();
  /** Takes it out of those who are told. */
  readonly leave: () => void;
  #refused = new Map<string, string>();
  #woken = new AbortController();

  constructor(leave: () => void) {
    this.leave = leave;
  }

  tell(token: string, refused: string | undefined): void {
    if (refused === undefined) this.later.add(token);
    else this.#refused.set(token, refused);
    this.#woken.abort();
  }

  /** Resolves when something was told here since the last time, or with the news of the run. @throws the reason of the signal. */
  async untilNews(signal: AbortSignal, ofRun: (until: AbortSignal) => Promise<void>): Promise<void> {
    await ofRun(AbortSignal.any([signal, this.#woken.signal]));
    this.#woken = new AbortController();
    signal.throwIfAborted();
  }

  /** Why answers did not do, by the tokens of the questions: those are to be asked again. */
  takeRefused(): ReadonlyMap<string, string> {
    const refused = this.#refused;
    this.#refused = new Map();
    return refused;
  }
}
