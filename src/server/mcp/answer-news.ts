/** News about questions that are not recorded in the run: that nobody wants to answer now, or that an answer was refused. Open calls in this process hear it. */
export class AnswerNews {
  readonly #calls = new Map<string, Set<CallNews>>();

  /** Collects the news for an open call of the run, until the call leaves. */
  of(run: string): CallNews {
    const calls = this.#calls.get(run) ?? new Set();
    this.#calls.set(run, calls);
    const hearing = new CallNews(() => {
      calls.delete(hearing);
      if (calls.size === 0) this.#calls.delete(run);
    });
    calls.add(hearing);
    return hearing;
  }

  /** @param refused why the answer was refused. Absent: nobody wants to answer now. */
  tell(run: string, token: string, refused?: string): void {
    for (const hearing of this.#calls.get(run) ?? []) hearing.tell(token, refused);
  }
}

export class CallNews {
  /** The tokens of questions that nobody wants to answer now. */
  readonly later: Set<string> = new Set();
  /** Ends the collecting. */
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

  /** Resolves when there is news here, or of the run. @throws the reason of the signal. */
  async untilNews(signal: AbortSignal, ofRun: (until: AbortSignal) => Promise<void>): Promise<void> {
    await ofRun(AbortSignal.any([signal, this.#woken.signal]));
    this.#woken = new AbortController();
    signal.throwIfAborted();
  }

  /** Why answers were refused, by the tokens of their questions, which are to be asked again. */
  takeRefused(): ReadonlyMap<string, string> {
    const refused = this.#refused;
    this.#refused = new Map();
    return refused;
  }
}
