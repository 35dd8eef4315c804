/**
 * What a chat server makes of a session for `useChat` of the AI SDK, without its HTTP: it has nothing but `runtime.session`. The ids of the
 * user's messages are the client's, that of an answer is the id of its turn.
 */
import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';
import type { Runtime, SentMessage, Session } from '#runtime';

export class SessionTransport implements ChatTransport<UIMessage> {
  readonly resumeStreamIsReplay = true;
  readonly #session: Session;

  constructor(runtime: Runtime, name: string) {
    this.#session = runtime.session(name);
  }

  async sendMessages({
    trigger,
    messageId,
    messages,
    abortSignal,
  }: Parameters<ChatTransport<UIMessage>['sendMessages']>[0]): Promise<ReadableStream<UIMessageChunk>> {
    const from = (await this.#session.position()) + 1;
    const sent = await this.#accept(trigger, messageId, messages);
    // The client's `stop` ends its request: nobody wants the answer any more.
    abortSignal?.addEventListener('abort', () => void this.#session.cancel());
    return streamOf(this.#answer(sent.turn, from));
  }

  async #accept(
    trigger: 'submit-message' | 'regenerate-message',
    messageId: string | undefined,
    messages: readonly UIMessage[],
  ): Promise<SentMessage> {
    const session = this.#session;
    if (trigger === 'regenerate-message') {
      const turn = messageId ?? (await session.turns({ limit: 1 }))[0]?.turn ?? '';
      return session.regenerate(turn, { busy: 'interrupt' });
    }
    const last = messages.at(-1);
    const text = textOf(last);
    if (messageId === undefined) return session.send(text, { id: last?.id ?? '' });
    const turns = await session.turns();
    const edited = turns.find((turn) => turn.messages.some(({ id }) => id === messageId));
    return session.edit(edited?.turn ?? '', text, { id: messageId, busy: 'interrupt' });
  }

  /** The answer of the turn under way from its beginning. */
  async reconnectToStream(): Promise<ReadableStream<UIMessageChunk> | null> {
    const open = (await this.#session.turns()).find(({ status }) => status === 'running' || status === 'pending');
    return open === undefined ? null : streamOf(this.#answer(open.turn, open.position));
  }

  /** What a page has when it is loaded. */
  async load(): Promise<UIMessage[]> {
    const turns = await this.#session.turns();
    return turns.flatMap(({ turn, status, messages, exchanges }): UIMessage[] => {
      const [said] = exchanges;
      const user: UIMessage = { id: messages[0]?.id ?? '', role: 'user', parts: [textPart(said?.user ?? '')] };
      // That of a turn under way comes by its stream.
      if (status === 'running' || status === 'pending') return [user];
      const parts = said?.assistant == null ? [] : [textPart(said.assistant)];
      return [user, { id: turn, role: 'assistant', parts }];
    });
  }

  async *#answer(turn: string, from: number): AsyncGenerator<UIMessageChunk> {
    let shown = '';
    const more = function* (text: string): Generator<UIMessageChunk> {
      if (text === '') return;
      if (shown === '') yield { type: 'text-start', id: turn };
      shown += text;
      yield { type: 'text-delta', id: turn, delta: text };
    };
    for await (const event of this.#session.events({ from })) {
      if (event.identity.run !== turn) continue;
      if (event.type === 'run.started') yield { type: 'start', messageId: turn };
      if (event.type === 'token' && event.channel === 'text')
        yield* more(event.text.slice(shown.length - event.offset));
      if (event.type === 'planner.error') yield { type: 'error', errorText: event.error.message };
      if (event.type === 'planner.finish' && typeof event.payload === 'string')
        yield* more(event.payload.slice(shown.length));
      if (event.type === 'planner.finish' || event.type === 'planner.error') break;
    }
    if (shown !== '') yield { type: 'text-end', id: turn };
    yield { type: 'finish' };
  }
}

function textPart(text: string): UIMessage['parts'][number] {
  return { type: 'text', text };
}

export function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function streamOf(chunks: AsyncGenerator<UIMessageChunk>): ReadableStream<UIMessageChunk> {
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await chunks.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    cancel: async () => void (await chunks.return(undefined)),
  });
}
