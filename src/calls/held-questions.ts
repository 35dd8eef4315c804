/** Questions of calls that stay open in this process until somebody has answered. */
import { type CallPlace, type WaitEnd, type WaitPlace, waitId } from '#core';
import { type RunState, waitingCall } from '#state';
import type { RunWriter } from '../loop/run-writer.ts';
import { waitEntries } from './wait-entries.ts';
import { assertSame, type NewWait } from './waits.ts';

interface HeldPorts {
  readonly state: RunState;
  readonly writer: Pick<RunWriter, 'commit'>;
  newToken(): string;
  /** The run may read as paused now. */
  onAsked(): void;
}

export class HeldQuestions {
  readonly #ports: HeldPorts;
  /** All who wait for one answer: an attempt that is over may begin to wait after the one that follows it. */
  readonly #open = new Map<string, { readonly at: WaitPlace; readonly resolves: ((end: WaitEnd) => void)[] }>();

  /** Those whose entries are on their way to the store. */
  readonly #asking = new Map<string, Promise<void>>();

  constructor(ports: HeldPorts) {
    this.#ports = ports;
  }

  /**
   * Asks, unless somebody is asked still, since the life of another process or attempt. Resolves when the wait has ended: at once with the answer
   * to what an attempt has asked that is over. A wait that is known, and has not ended, was asked for by such an attempt. @throws the journal's
   * refusal.
   */
  async ask({ step, call }: CallPlace, asked: NewWait, startedAt: number): Promise<WaitEnd> {
    const at = { step, call, wait: asked.wait };
    const id = waitId(at);
    // An attempt that is over may be about to ask it.
    if (this.#asking.has(id)) await this.#asking.get(id);
    const { open } = this.#ports.state;
    if (open !== null && !this.#isAsked(at)) {
      const known = waitingCall(open, call)?.waits.find(({ wait }) => wait === asked.wait);
      if (known !== undefined) assertSame(known, asked);
      if (known?.end !== undefined && asked.again === undefined) return known.end;
      await this.#begin(at, asked, known !== undefined && known.end === undefined, startedAt);
    }
    const { promise, resolve } = Promise.withResolvers<WaitEnd>();
    const waiting = this.#open.get(id) ?? { at, resolves: [] };
    waiting.resolves.push(resolve);
    this.#open.set(id, waiting);
    // Whoever has called the tool waits for it first.
    await undefined;
    this.hear();
    this.#ports.onAsked();
    return promise;
  }

  /** @param isBegun the wait is known already. */
  async #begin(at: WaitPlace, asked: NewWait, isBegun: boolean, startedAt: number): Promise<void> {
    const { state, writer } = this.#ports;
    if (state.open === null) return;
    const waits = { kind: 'waits', waits: [asked], startedAt, held: true } as const;
    const [begins, ...asks] = waitEntries({ step: at.step, call: at.call }, waits, state.open, this.#ports);
    const committed = writer.commit(isBegun || begins === undefined ? asks : [begins, ...asks], { status: 'paused' });
    const id = waitId(at);
    if (committed !== undefined) this.#asking.set(id, committed);
    try {
      await committed;
    } finally {
      this.#asking.delete(id);
    }
  }

  #isAsked({ step, call, wait }: WaitPlace): boolean {
    return this.#ports.state.pauses.some((one) => one.step === step && one.call === call && one.wait === wait);
  }

  /** Whether the call has asked and nobody has answered yet. */
  isAsking(call: number): boolean {
    return [...this.#open.values()].some(({ at }) => at.call === call);
  }

  /** Calls go on whose questions have been answered, or are asked no more. */
  hear(): void {
    if (this.#open.size === 0) return;
    const { open } = this.#ports.state;
    for (const [id, { at, resolves }] of this.#open) {
      const isOpen = open?.move.step === at.step;
      const known = isOpen ? waitingCall(open, at.call)?.waits.find(({ wait }) => wait === at.wait) : undefined;
      if (!this.#isAsked(at)) this.#open.delete(id);
      if (known?.end !== undefined) for (const resolve of resolves) resolve(known.end);
    }
  }
}
