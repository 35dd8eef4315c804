/**
 * The operator: looks from outside at what waits for a person, and says the answer through one of the processes. Approvals are given and
 * refused, questions answered, and calls in doubt settled by what the ledger says, when nobody can be at them any more.
 */
import type { Journal } from '#pilotage/journal';
import { type PauseNotice, runResultOf } from '#runtime';
import { foldEntries } from '#state';
import { answerTo, type Surroundings } from '../double-act/person.ts';
import type { Member } from './crew.ts';
import { LEASE_MS } from './times.ts';
import { type Answer, faultOf, machineMs, type Said } from './words.ts';

const REFUSES = 0.15;
/** Whoever had the run before has entered the call by then, or does not enter it any more. */
const LOOKS_FIRST_MS = 3 * LEASE_MS;
/** Whoever was told to say it may have died. */
const SAYS_AGAIN_MS = 3_000;

export interface OperatorOptions {
  readonly journal: Journal;
  readonly around: Surroundings;
  readonly random: () => number;
  /** Somebody who can speak now. */
  speaker(): Member | undefined;
  say(said: Said): void;
}

export class Operator {
  readonly #options: OperatorOptions;
  readonly #seen = new Map<string, number>();
  readonly #answered = new Map<string, number>();
  answers = 0;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  /** Looks once at everything that waits for a person. */
  async look(): Promise<void> {
    const { journal, say } = this.#options;
    try {
      const paused = await journal.list({ status: ['paused'], limit: 200 });
      for (const { identity, parent } of paused) {
        if (parent !== undefined) continue;
        const result = runResultOf(foldEntries(await journal.read(identity.run)));
        if (result?.status === 'paused') for (const pause of result.pauses) this.#consider(identity.run, pause);
      }
    } catch (error) {
      say(faultOf(error));
    }
  }

  #consider(run: string, pause: PauseNotice): void {
    const { token } = pause;
    const now = machineMs();
    const since = this.#seen.get(token) ?? now;
    this.#seen.set(token, since);
    if (now - (this.#answered.get(token) ?? Number.NEGATIVE_INFINITY) < SAYS_AGAIN_MS) return;
    const answer = this.#answerTo(pause, now - since);
    const speaker = this.#options.speaker();
    if (answer === undefined || speaker === undefined) return;
    this.#answered.set(token, now);
    this.answers += 1;
    speaker.tell({ do: 'answer', id: run, token, answer });
  }

  #answerTo(pause: PauseNotice, seenForMs: number): Answer | undefined {
    const { around, random } = this.#options;
    if (pause.reason === 'in_doubt') return seenForMs < LOOKS_FIRST_MS ? undefined : answerTo(pause, around);
    if (pause.wait !== undefined) return random() < REFUSES ? 'reject' : { says: random() < REFUSES ? 'what?' : 7 };
    if (pause.reason !== 'approval_required') return 'resume';
    return random() < REFUSES ? 'reject' : 'approve';
  }
}
