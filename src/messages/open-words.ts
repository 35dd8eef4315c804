/**
 * The words of a run's open step, as chunks. They are streamed while the model writes them, and come again, whole, with the decision of the step. The decision
 * counts: where the two differ, the step is taken back and told anew.
 */
import type { RunEvent } from '#core';
import type { UIChunk } from './ui-chunks.ts';

type Tell = (chunk: UIChunk) => void;
type Channel = RunEvent<'token'>['channel'];

const CHANNELS: readonly Channel[] = ['reasoning', 'text'];

/** Arguments of a call that are being written. */
interface Input {
  readonly tool: string;
  said: string;
  /** The call was made. */
  isMade: boolean;
}

export class OpenWords {
  readonly run: string;
  readonly step: number;
  readonly #tell: Tell;
  readonly #said: Partial<Record<Channel, string>> = {};
  readonly #inputs = new Map<string, Input>();
  /** The chunks of the step that hold, each in one piece: they are told again when the step is taken back. */
  #whole: UIChunk[] = [];
  /** True when something was told after the `start-step` of the step. */
  #isTold = false;
  #isDecided = false;

  constructor(run: string, step: number, tell: Tell) {
    this.run = run;
    this.step = step;
    this.#tell = tell;
  }

  get isDecided(): boolean {
    return this.#isDecided;
  }

  /** Tells a chunk that stays, whatever becomes of the words. */
  add(chunk: UIChunk): void {
    this.#isTold = true;
    if (!this.#isDecided) this.#whole.push(chunk);
    this.#tell(chunk);
  }

  /** @param offset where the text begins in the whole. What was told before is not told twice; what is missing comes with the decision. */
  say(channel: Channel, text: string, offset: number): void {
    const known = this.#said[channel];
    const length = known?.length ?? 0;
    if (this.#isDecided || offset > length) return;
    const delta = offset === length ? text : text.slice(length - offset);
    if (known === undefined) {
      this.#isTold = true;
      this.#tell({ type: `${channel}-start`, id: this.#id(channel) });
    }
    if (delta !== '') this.#tell({ type: `${channel}-delta`, id: this.#id(channel), delta });
    this.#said[channel] = (known ?? '') + delta;
  }

  /** Like `say`, for the arguments of a call. */
  write(toolCallId: string, tool: string, text: string, offset: number): void {
    if (this.#isDecided) return;
    let input = this.#inputs.get(toolCallId);
    if (input === undefined) {
      input = { tool, said: '', isMade: false };
      this.#inputs.set(toolCallId, input);
      this.#isTold = true;
      this.#tell({ type: 'tool-input-start', toolCallId, toolName: tool, dynamic: true });
    }
    if (offset > input.said.length) return;
    const delta = text.slice(input.said.length - offset);
    input.said += delta;
    if (delta !== '') this.#tell({ type: 'tool-input-delta', toolCallId, inputTextDelta: delta });
  }

  /** The step is decided, and these are its words. */
  decide(words: Readonly<Record<Channel, string>>): void {
    const fits = CHANNELS.every((channel) => isSame(this.#said[channel] ?? '', words[channel]));
    if (!fits) this.takeBack();
    this.#isDecided = true;
    for (const channel of CHANNELS) {
      const known = this.#said[channel];
      if (known === undefined && words[channel] === '') continue;
      const said = known ?? '';
      const rest = words[channel].slice(said.length);
      const id = this.#id(channel);
      if (known === undefined) this.#tell({ type: `${channel}-start`, id });
      if (rest !== '') this.#tell({ type: `${channel}-delta`, id, delta: rest });
      this.#tell({ type: `${channel}-end`, id });
      this.#isTold = true;
      this.#said[channel] = said + rest;
      this.#whole.push(...spoken(channel, id, said + rest));
    }
  }

  /** Tells another text of the step, in one piece. */
  addText(name: string, text: string): void {
    for (const chunk of spoken('text', `${this.#id('text')}.${name}`, text)) this.add(chunk);
  }

  call(toolCallId: string, toolName: string, input: Extract<UIChunk, { type: 'tool-input-available' }>): void {
    const known = this.#inputs.get(toolCallId);
    if (known !== undefined) known.isMade = true;
    const start: UIChunk = {
      ...{ type: 'tool-input-start', toolCallId, toolName, dynamic: true },
      ...(input.providerExecuted === true ? { providerExecuted: true } : {}),
    };
    if (known === undefined) this.#tell(start);
    this.#isTold = true;
    this.#whole.push(start, input);
    this.#tell(input);
  }

  /** All calls of the step are known. If arguments were streamed of a call that was refused, the step is told anew without them. */
  settleInputs(): void {
    if ([...this.#inputs.values()].every(({ isMade }) => isMade)) return;
    this.#inputs.clear();
    this.#tell({ type: 'reset-step' });
    for (const chunk of this.#whole) this.#tell(chunk);
  }

  /** Takes back the words of the step. The chunks that do not depend on them are told again. */
  takeBack(): void {
    if (!this.#isTold) return;
    delete this.#said.text;
    delete this.#said.reasoning;
    this.#inputs.clear();
    this.#tell({ type: 'reset-step' });
    for (const chunk of this.#whole) this.#tell(chunk);
    this.#isTold = this.#whole.length > 0;
  }

  /** Ends the open parts of a step that nothing will decide any more. Arguments of calls that were never made are taken back. */
  close(): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    for (const channel of CHANNELS) {
      const said = this.#said[channel];
      if (said === undefined) continue;
      this.#tell({ type: `${channel}-end`, id: this.#id(channel) });
      this.#whole.push(...spoken(channel, this.#id(channel), said));
    }
    this.settleInputs();
  }

  #id(channel: Channel): string {
    return `${channel}-${this.step}`;
  }
}

function spoken(channel: Channel, id: string, delta: string): UIChunk[] {
  return [
    { type: `${channel}-start`, id },
    { type: `${channel}-delta`, id, delta },
    { type: `${channel}-end`, id },
  ];
}

/** Whether the record begins with what was streamed. White space that was cut off at the end of the record makes no difference. */
function isSame(streamed: string, recorded: string): boolean {
  return recorded.startsWith(streamed) || streamed.trimEnd() === recorded;
}
