/** The real client of A2A, over either binding, and a served agent. */

import { type Message, Role, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import {
  AgentCardResolver,
  type Client,
  ClientFactory,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { onTestFinished } from 'vitest';
import { systemClock } from '#core';
import { createHandler, serve } from '#server';
import { type A2aOptions, a2a } from '#server/a2a';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { type World, type WorldOptions, world } from '../kit/world.ts';

export const BINDINGS = ['JSONRPC', 'HTTP+JSON'] as const;
export type BindingName = (typeof BINDINGS)[number];

export async function clientAt(url: string, binding: BindingName, fetchImpl: typeof fetch = fetch): Promise<Client> {
  const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })];
  const factory = new ClientFactory({
    transports,
    preferredTransports: [binding],
    cardResolver: AgentCardResolver.default,
  });
  return factory.createFromUrl(url);
}

export function said(text: string, more: Partial<Message> = {}): Message {
  const content = { $case: 'text' as const, value: text };
  return messageOf([{ content, metadata: undefined, filename: '', mediaType: '' }], more);
}

export function data(value: unknown, more: Partial<Message> = {}): Message {
  return messageOf([{ content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: '' }], more);
}

function messageOf(parts: Message['parts'], more: Partial<Message>): Message {
  return {
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  };
}

export function asked(message: Message, configuration?: object): never {
  // The fields of a configuration may be left out on the wire, which its type does not say.
  return { tenant: '', message, metadata: undefined, configuration } as never;
}

export function wordsOf(parts: Message['parts'] | undefined): string {
  return (parts ?? []).map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
}

export function answerOf(task: Task): string {
  return wordsOf(task.artifacts.find(({ artifactId }) => artifactId === 'answer')?.parts);
}

export function isTask(value: Task | Message): asserts value is Task {
  if (!('status' in value)) throw new Error('A message came in place of a task.');
}

export async function sendFor(client: Client, message: Message, configuration?: object): Promise<Task> {
  const sent = await client.sendMessage(asked(message, configuration));
  isTask(sent as Task | Message);
  return sent as Task;
}

/** What a reader of a stream has in the end: it appends and replaces as the protocol says. */
export class Reader {
  readonly kinds: string[] = [];
  readonly states: TaskState[] = [];
  task: Task | undefined;
  answer = '';

  async read(stream: AsyncIterable<StreamResponse>, until: (reader: Reader) => boolean = () => false): Promise<this> {
    for await (const { payload } of stream) {
      if (payload === undefined) throw new Error('An event without a payload.');
      this.kinds.push(payload.$case);
      if (payload.$case === 'task') {
        this.task = payload.value;
        this.answer = answerOf(payload.value);
        this.states.push(payload.value.status?.state ?? TaskState.UNRECOGNIZED);
      } else if (payload.$case === 'statusUpdate')
        this.states.push(payload.value.status?.state ?? TaskState.UNRECOGNIZED);
      else if (payload.$case === 'artifactUpdate' && payload.value.artifact?.artifactId === 'answer') {
        const text = wordsOf(payload.value.artifact.parts);
        this.answer = payload.value.append ? this.answer + text : text;
      }
      if (until(this)) break;
    }
    return this;
  }
}

/** The agent of the scenarios behind A2A, over real HTTP. */
export async function servedAgent(
  options: { a2a?: A2aOptions; world?: Partial<WorldOptions>; handler?: object } = {},
): Promise<World & { readonly effects: Effects; readonly url: string }> {
  const effects = new Effects();
  const made = world({ agents: [scenarioAgent(effects)], clock: systemClock as never, ...options.world });
  const handler = createHandler({ runtime: made.runtime, parts: [a2a(options.a2a)], ...options.handler });
  const { url, close } = await serve(handler, { port: 0 });
  onTestFinished(async () => {
    await close();
    await made.runtime.close();
  });
  return { ...made, effects, url };
}
