/** A signal that is made when somebody asks for it: many never do, and an AbortController is not cheap. */
export class LazySignal {
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#aborted !== undefined;
  }

  /** @param reason `undefined`: an AbortError. */
  abort(reason?: unknown): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}
