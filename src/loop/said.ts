/** What a planner has said of the step that it is at, and is recorded only with the step's decision. */
import type { SpokenDelta } from '#core';

/** What adds something to what was said. */
export type SaidDelta = Exclude<SpokenDelta, { readonly type: 'reset' }>;

/** Its characters are counted together: those of the text, of the reasoning, or of the arguments of one call. */
export function channelOf(delta: SaidDelta): string {
  return delta.type === 'input' ? `input ${delta.callId}` : delta.type;
}

export class Said {
  readonly step: number;
  readonly #channels = new Map<string, SaidDelta>();

  constructor(step: number) {
    this.step = step;
  }

  add(delta: SaidDelta): void {
    const channel = channelOf(delta);
    const before = this.#channels.get(channel);
    this.#channels.set(channel, before === undefined ? delta : { ...before, text: before.text + delta.text });
  }

  /** What was said in this channel. */
  textOf(delta: SaidDelta): string {
    return this.#channels.get(channelOf(delta))?.text ?? '';
  }

  /** Each channel in one piece, the reasoning first. */
  whole(): readonly SaidDelta[] {
    const all = [...this.#channels.values()];
    return [...all.filter(({ type }) => type === 'reasoning'), ...all.filter(({ type }) => type !== 'reasoning')];
  }
}
