/**
 * The model of a recording, behind a real HTTP server: it holds each request against what the recorded model was shown,
 * and answers with what that model said.
 */
import { isDeepStrictEqual } from 'node:util';
import { guidanceTurn } from '#prompt';
import type { ChatMessage, ChatRequest, ServerReply } from '#testing';
import { type RecordedMessage, type Recording, readArguments } from './recording.ts';

export class RecordedModel {
  /** Requests that were made again after a crash. */
  askedAgain = 0;
  /** Requests that ended with the hint that the run goes round in circles, which the recorded model was not given. */
  hinted = 0;
  readonly #recording: Recording;
  readonly #streaming: boolean;
  /** Everything of a request but its messages, as JSON text. */
  #head: string | undefined;
  /** The messages of the last request, each as JSON text. */
  #sent: readonly string[] = [];
  #asked = 0;
  #mayAskAgain = false;
  readonly #callIds = new Set<string>();
  /** The ids of the calls in the last assistant message, in order. */
  #open: readonly string[] = [];

  constructor(recording: Recording, streaming: boolean) {
    this.#recording = recording;
    this.#streaming = streaming;
  }

  /** Turns that were asked for. */
  get asked(): number {
    return this.#asked;
  }

  /** A process died: its last request may have been on its way, and the next process makes it again. */
  crashed(): void {
    this.#mayAskAgain = true;
  }

  /** @throws Error saying how the request differs from the recording. */
  answer(request: ChatRequest): ServerReply {
    const { turns } = this.#recording;
    const { messages: all, ...rest } = request;
    const messages = this.#withoutHint(all);
    this.#checkHead(rest, messages[0]);
    const texts = messages.map((message) => JSON.stringify(message));
    const changed = this.#sent.findIndex((text, index) => text !== texts[index]);
    if (changed !== -1) throw this.#differs(`message ${changed} is not as it was in the request before`);
    if (this.#asked > 0 && texts.length === this.#sent.length) {
      if (!this.#mayAskAgain) throw this.#differs('it was made before, and nothing had crashed');
      this.askedAgain += 1;
    } else {
      this.#checkNew(messages, turns[this.#asked]?.shown);
      this.#sent = texts;
      this.#asked += 1;
    }
    this.#mayAskAgain = false;
    const { text = '', calls = [] } = turns[this.#asked - 1] ?? {};
    return {
      ...(text === '' ? {} : { text }),
      calls: calls.map(({ id, tool, input }) => ({ id, tool, input })),
    };
  }

  #checkHead(rest: Omit<ChatRequest, 'messages'>, system: ChatMessage | undefined): void {
    const head = JSON.stringify(rest);
    if (this.#head !== undefined) {
      if (head !== this.#head) throw this.#differs('its tools or settings are not those of the request before');
      return;
    }
    this.#head = head;
    if ((rest.stream === true) !== this.#streaming) throw this.#differs(`stream is ${rest.stream}`);
    if (system?.role !== 'system' || !String(system.content).startsWith(this.#recording.system)) {
      throw this.#differs('it does not begin with the recorded system prompt');
    }
    const tools = (rest.tools ?? []).map((tool) => tool.function);
    if (!isDeepStrictEqual(byName(tools), byName(this.#recording.tools))) {
      throw this.#differs('its tools are not the recorded ones');
    }
  }

  /**
   * Without the hint at the end, if there is one: it stands in one request, and only after the recorded model has made the same
   * calls over and over, word for word as the prompt has it.
   */
  #withoutHint(messages: readonly ChatMessage[]): readonly ChatMessage[] {
    const last = messages.at(-1);
    const found = last?.role === 'user' ? HINT.exec(String(last.content)) : null;
    if (found === null) return messages;
    const times = Number(found[2]);
    const period = Number(found[1]) / times;
    const hint = guidanceTurn({}, { period, times })?.message.content;
    const isOurs = JSON.stringify(hint) === JSON.stringify([{ type: 'text', text: last?.content }]);
    if (!isOurs || !this.#wentRound(period, times)) throw this.#differs('it has a hint that nothing calls for');
    this.hinted += 1;
    return messages.slice(0, -1);
  }

  /** The last `times` times `period` turns that were asked for made the same calls. */
  #wentRound(period: number, times: number): boolean {
    // A request that is made again after a crash asks for the same turn.
    return [this.#asked, this.#asked - 1].some((end) => {
      const calls = this.#recording.turns.slice(Math.max(0, end - period * times), end).map(callsOf);
      return (
        calls.length === period * times &&
        calls.every((made, at) => made !== NO_CALLS && (at < period || made === calls[at - period]))
      );
    });
  }

  /** The messages since the request before are those of the recording, up to where the next turn was asked for. */
  #checkNew(messages: readonly ChatMessage[], shown: number | undefined): void {
    if (shown === undefined) throw this.#differs('the recording has no turn for it');
    if (messages.length - 1 !== shown) {
      throw this.#differs(`it has ${messages.length - 1} messages, and the recorded one had ${shown}`);
    }
    for (let index = Math.max(this.#sent.length - 1, 0); index < shown; index += 1) {
      const recorded = this.#recording.messages[index] as RecordedMessage;
      const message = messages[index + 1] as ChatMessage;
      if (!isDeepStrictEqual(comparable(message), this.#expected(recorded, message))) {
        const sent = JSON.stringify(message).slice(0, 300);
        throw this.#differs(`message ${index + 1} is not the recorded ${recorded.role} message: ${sent}`);
      }
    }
  }

  /** The recorded message under the ids of this run. An id belongs to one call of the run, and a result to its place. */
  #expected({ role, content, tool_calls = [] }: RecordedMessage, sent: ChatMessage): unknown {
    if (role === 'tool') {
      const [tool_call_id, ...open] = this.#open;
      this.#open = open;
      return { role, content: content ?? '', tool_call_id };
    }
    if (tool_calls.length === 0) return { role, content: content ?? '' };
    this.#open = (sent.tool_calls ?? []).map(({ id }) => id);
    for (const id of this.#open) {
      if (this.#callIds.has(id)) throw this.#differs(`the call id ${id} is used twice`);
      this.#callIds.add(id);
    }
    const calls = tool_calls.map((call, index) => ({
      id: this.#open[index],
      type: 'function',
      function: { name: call.function.name, arguments: readArguments(call.function.arguments) },
    }));
    return { role, content: content ?? '', tool_calls: calls };
  }

  #differs(how: string): Error {
    return new Error(`request ${this.#asked + 1}: ${how}`);
  }
}

const HINT = /^(?:<runtime_note>\n)?reminder: your last (\d+) steps made the same calls (\d+) times over, /;

const NO_CALLS = '[]';

function callsOf({ calls = [] }: Recording['turns'][number]): string {
  const made = calls.map(({ tool, input }) => [tool, readArguments(input)]);
  return JSON.stringify(made);
}

/** No text is null or empty, as providers have it; arguments are compared as what they say. */
function comparable(message: ChatMessage): unknown {
  const { tool_calls, ...rest } = message;
  const plain = { ...rest, content: message.content ?? '' };
  if (tool_calls === undefined) return plain;
  const calls = tool_calls.map((call) => ({
    ...call,
    function: { ...call.function, arguments: readArguments(call.function.arguments) },
  }));
  return { ...plain, tool_calls: calls };
}

function byName<T extends { readonly name: string }>(tools: readonly T[]): readonly T[] {
  return tools.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
