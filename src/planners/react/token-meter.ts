/** How many tokens the requests of one run have: the provider's own count of the last one, and an estimate of the rest. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { Compaction, RunView } from '#core';
import { type CountedBefore, type ReadyModel, TokenCounter } from '#model';

export class TokenMeter {
  readonly #counter = new TokenCounter();
  /** What the provider counted, as long as the messages go on from there. */
  #counted: { readonly model: ReadyModel; readonly compaction: Compaction | undefined } & CountedBefore = NOTHING;

  estimate(request: LanguageModelV4CallOptions, model: ReadyModel, { trajectory }: RunView): number {
    const counted = this.#counted;
    const goesOn = counted.model === model && counted.compaction === trajectory.compaction;
    return this.#counter.estimate(request, goesOn ? counted : undefined);
  }

  /** After a reply. @param messages of the request that the provider has counted; later requests begin with them. */
  note(model: ReadyModel, compaction: Compaction | undefined, counted: CountedBefore): void {
    this.#counted = { model, compaction, ...counted };
  }
}

const NOTHING = { model: {} as ReadyModel, compaction: undefined, inputTokens: 0, messages: 0 };
