/** A client of `useChat` without React, and a server with chats for it. */
import { AbstractChat, type ChatInit, DefaultChatTransport, type DynamicToolUIPart, type UIMessage } from 'ai';
import { onTestFinished } from 'vitest';
import type { Runtime } from '#runtime';
import { createHandler, serve } from '#server';
import { type AiSdkOptions, aiSdk } from '#server/ai-sdk';

export async function serveChats(
  runtime: Runtime,
  options: AiSdkOptions = {},
  more: Partial<Parameters<typeof createHandler>[0]> = {},
): Promise<string> {
  const faults: unknown[] = [];
  const handler = createHandler({ runtime, parts: [aiSdk(options)], onFault: (error) => faults.push(error), ...more });
  const { url, close } = await serve(handler, { port: 0 });
  onTestFinished(async () => {
    await close();
    if (faults.length > 0) throw faults[0];
  });
  return url;
}

export class Chat extends AbstractChat<UIMessage> {
  readonly data: unknown[];

  constructor(url: string, init: Partial<ChatInit<UIMessage>> & { readonly headers?: Record<string, string> } = {}) {
    const { headers = {}, messages = [], ...rest } = init;
    const data: unknown[] = [];
    const state = {
      status: 'ready' as const,
      error: undefined,
      messages: [...messages],
      pushMessage(message: UIMessage) {
        this.messages = [...this.messages, message];
      },
      popMessage() {
        this.messages = this.messages.slice(0, -1);
      },
      replaceMessage(index: number, message: UIMessage) {
        this.messages = this.messages.with(index, message);
      },
      snapshot: <T>(thing: T): T => structuredClone(thing),
    };
    const transport = new DefaultChatTransport<UIMessage>({ api: `${url}/api/chat`, headers });
    super({ transport, state, id: 'talk', onData: (part) => void data.push(part), ...rest });
    this.data = data;
  }

  get said(): string[] {
    return this.messages.map(
      ({ role, parts }) => `${role}: ${parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}`,
    );
  }

  get calls(): DynamicToolUIPart[] {
    return this.messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'dynamic-tool'));
  }

  get approvals(): string[] {
    return this.calls.flatMap((part) => (part.state === 'approval-requested' ? [part.approval.id] : []));
  }
}

/** What a page gets when it is loaded. */
export async function historyOf(url: string, id = 'talk', headers: Record<string, string> = {}): Promise<UIMessage[]> {
  const answer = await fetch(`${url}/api/chat/${id}/messages`, { headers });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as UIMessage[];
}

/** Messages as they travel: without what is undefined, and without the ends of texts. */
export function plain(messages: readonly UIMessage[]): unknown {
  return JSON.parse(
    JSON.stringify(messages.map(({ id, role, parts, metadata }) => ({ id, role, metadata, parts }))),
    (key, value) => (key === 'metadata' && value?.author !== undefined ? { ...value } : value),
  );
}
