/**
 * What is said in the open step of a run, as chunks: words come while they are made, and again with the step's decision, which is what counts. Where the two
 * differ the step is taken back and told anew.
 */
import type { UIChunk } from './ui-chunks.ts';

type Tell = (chunk: UIChunk) => void;
export type Channel = 'text' | 'reasoning';

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
  /** What the step came to so far, in whole chunks: told again when it is taken back. */
  #whole: UIChunk[] = [];
  /** Something was told behind the mark of the step. */
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

  /** Adds what stays, whatever becomes of the words. */
  add(chunk: UIChunk): void {
    this.#isTold = true;
    if (!this.#isDecided) this.#whole.push(chunk);
    this.#tell(chunk);
  }

  /** @param offset how much of it was said before: what is known already is not told twice, and a gap is closed by the decision. */
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

  /** The same for arguments. */
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

  /** The step is decided, and this was said in it. */
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

  /** More that is said, in one piece. */
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

  /** All its calls are known: what was written of others, which were refused, is taken back. */
  settleInputs(): void {
    if ([...this.#inputs.values()].every(({ isMade }) => isMade)) return;
    this.#inputs.clear();
    this.#tell({ type: 'reset-step' });
    for (const chunk of this.#whole) this.#tell(chunk);
  }

  /** Nothing that was said in the step counts. What does not hang on the words stays. */
  takeBack(): void {
    if (!this.#isTold) return;
    delete this.#said.text;
    delete this.#said.reasoning;
    this.#inputs.clear();
    this.#tell({ type: 'reset-step' });
    for (const chunk of this.#whole) this.#tell(chunk);
    this.#isTold = this.#whole.length > 0;
  }

  /** Ends parts that are open, when nothing decides the step any more. */
  close(): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    for (const channel of CHANNELS)
      if (this.#said[channel] !== undefined) this.#tell({ type: `${channel}-end`, id: this.#id(channel) });
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

/** What was streamed is the beginning of what is recorded. A blank at its end that was cut off is no reason to begin anew. */
function isSame(streamed: string, recorded: string): boolean {
  return recorded.startsWith(streamed) || streamed.trimEnd() === recorded;
}
