/** Questions of calls that stay open in this process until somebody has answered. */
import { type CallPlace, type WaitEnd, type WaitPlace, waitId } from '#core';
import { type RunState, waitingCall } from '#state';
import type { RunWriter } from '../loop/run-writer.ts';
import { waitEntries } from './wait-entries.ts';
import type { NewWait } from './waits.ts';

interface HeldPorts {
  readonly state: RunState;
  readonly writer: Pick<RunWriter, 'commit'>;
  newToken(): string;
  /** The run may read as paused now. */
  onAsked(): void;
}

export class HeldQuestions {
  readonly #ports: HeldPorts;
  readonly #open = new Map<string, { readonly at: WaitPlace; readonly resolve: (end: WaitEnd) => void }>();

  constructor(ports: HeldPorts) {
    this.#ports = ports;
  }

  /**
   * Asks, unless somebody is asked still, since the life of another process. Resolves when the wait has ended. A wait that is known, and has not
   * ended, was asked for by an attempt that is over. @throws the journal's refusal.
   */
  async ask({ step, call }: CallPlace, asked: NewWait, startedAt: number): Promise<WaitEnd> {
    const at = { step, call, wait: asked.wait };
    const { promise, resolve } = Promise.withResolvers<WaitEnd>();
    const { state, writer, onAsked } = this.#ports;
    const { open } = state;
    if (open !== null && !this.#isAsked(at)) {
      const waits = { kind: 'waits', waits: [asked], startedAt, held: true } as const;
      const known = waitingCall(open, call)?.waits.find(({ wait }) => wait === asked.wait);
      const [begins, ...asks] = waitEntries({ step, call }, waits, open, this.#ports);
      const isBegun = begins === undefined || (known !== undefined && known.end === undefined);
      await writer.commit(isBegun ? asks : [begins, ...asks], { status: 'paused' });
    }
    this.#open.set(waitId(at), { at, resolve });
    // Whoever has called the tool waits for it first.
    await undefined;
    this.hear();
    onAsked();
    return promise;
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
    for (const [id, { at, resolve }] of this.#open) {
      const isOpen = open?.move.step === at.step;
      const known = isOpen ? waitingCall(open, at.call)?.waits.find(({ wait }) => wait === at.wait) : undefined;
      if (!this.#isAsked(at)) this.#open.delete(id);
      if (known?.end !== undefined) resolve(known.end);
    }
  }
}
