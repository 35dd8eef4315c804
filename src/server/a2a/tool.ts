/**
 * `a2aTool()`: another agent as a tool. The idempotency key of the call is the id of the message, and the task that the message began is recorded. After a
 * crash the task is looked up, and the message is not sent a second time.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { assertOptions, isJsonObject, type Json, type JsonObject, type OptionShape, PilotageError } from '#core';
import { compileSchema } from '#schema';
import { NotSent, OutcomeUnknown, type Reconciled, type Tool, type ToolContext, ToolFailure, tool } from '#tools';
import { A2aClient } from './client.ts';
import { type A2aMessage, type A2aPart, type AgentCard, isInterrupted, isTerminal, type Task } from './wire.ts';

export interface A2aToolOptions {
  /** The card of the agent. Give this or `url`. */
  readonly card?: AgentCard;
  /** The address of the card, or of a server that has its card at the usual path. */
  readonly url?: string;
  /** The name of the tool. Default: made of the name in the card, or `ask_agent`. */
  readonly name?: string;
  /** Tells the model what the agent can do. Default: what the card says. */
  readonly description?: string;
  /** Headers of each request, such as `authorization`. A function is called for each request. */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
  /** How long one attempt of the call follows the task, in milliseconds. The next attempt goes on with it. Default 600,000. */
  readonly timeoutMs?: number;
  /** True: each call first waits for an approval in this runtime, as in `tool`. */
  readonly needsApproval?: boolean;
}

const OPTIONS: OptionShape<A2aToolOptions> = {
  card: 'object?',
  url: 'text?',
  name: 'text?',
  description: 'text?',
  headers: 'any?',
  timeoutMs: 'count?',
  needsApproval: 'any?',
};
const TIMEOUT_MS = 600_000;
const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 2_000;
const CANCEL_MS = 5_000;
/** When the task is looked for after an answer was lost: the message may still be on its way to the agent. */
const LOOK_UP_AFTER_MS = [50, 500, 2_000];
/** How many pages of tasks are searched for the task of a lost answer. */
const MOST_PAGES = 10;

/** @throws PilotageError `invalid_config`. */
export function a2aTool(options: A2aToolOptions): Tool {
  assertOptions('a2aTool', options, OPTIONS);
  const { card, url, headers = {}, timeoutMs = TIMEOUT_MS, needsApproval } = options;
  const at = card ?? url;
  if (at === undefined || (card !== undefined && url !== undefined))
    throw new PilotageError('invalid_config', 'a2aTool takes the card of an agent, or its url: one of the two.');
  const name = options.name ?? nameOf(card);
  const description = options.description ?? describes(card);
  const client = new A2aClient({ card: at, headers: typeof headers === 'function' ? headers : () => headers });
  // The calls that this process has begun and of which nobody knows the end: `reconcile` in another process means that the one before has crashed.
  const begun = new Set<string>();
  return tool({
    name,
    description,
    effect: 'once',
    timeoutMs,
    ...(needsApproval === undefined ? {} : { needsApproval }),
    inputSchema: {
      type: 'object',
      properties: {
        message: { type: 'string', minLength: 1, description: 'What the agent is to do, understood by itself.' },
        contextId: {
          type: 'string',
          description: 'Of an earlier answer: goes on with that conversation. Leave it out for a new one.',
        },
      },
      required: ['message'],
      additionalProperties: false,
    },
    execute: async (args, context) => {
      const { idempotencyKey } = context;
      begun.add(idempotencyKey);
      try {
        const value = await new Asking(client, args, context).answer();
        begun.delete(idempotencyKey);
        return value;
      } catch (error) {
        if (error instanceof ToolFailure || error instanceof NotSent) begun.delete(idempotencyKey);
        throw error;
      }
    },
    // A look-up that fails is made again, so that the call stays known.
    reconcile: async (args, context) => {
      const found = await new Asking(client, args, context).lookUp(begun.has(context.idempotencyKey));
      if (found.status !== 'unknown') begun.delete(context.idempotencyKey);
      return found;
    },
  });
}

function nameOf(card: AgentCard | undefined): string {
  const word = card?.name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 50);
  return word ? `ask_${word}` : 'ask_agent';
}

function describes(card: AgentCard | undefined): string {
  if (card === undefined) return 'Gives a task to another agent, and gives its answer.';
  const skills = card.skills.map((skill) => `${skill.name}: ${skill.description}`).join('\n');
  return `Gives a task to the agent ${card.name}, and gives its answer. ${card.description}\n${skills}`.slice(0, 2_000);
}

/** What a message has begun: a task, or an answer at once. */
type Begun = { readonly taskId: string; readonly contextId: string } | { readonly answer: Json };

/** A question of a task. `state` differs from question to question. */
interface AskedOf {
  readonly question: string;
  readonly schema?: JsonObject;
  readonly token?: string;
  readonly isApproval: boolean;
  readonly state: string;
}

/** One attempt of a call. */
class Asking {
  readonly #client: A2aClient;
  readonly #args: Record<string, Json>;
  readonly #context: ToolContext;

  constructor(client: A2aClient, args: Record<string, Json>, context: ToolContext) {
    this.#client = client;
    this.#args = args;
    this.#context = context;
  }

  async answer(): Promise<Json> {
    const { once } = bound(this.#context);
    const begun = await once('task', () => this.#begin());
    if ('answer' in begun) return begun.answer;
    try {
      for (let round = 0; ; round += 1) {
        const seen = await once(`look ${round}`, async () => lookedAt(await this.#follow(begun.taskId)));
        if ('value' in seen) return seen.value;
        if ('failure' in seen)
          throw new ToolFailure(seen.failure, { code: 'agent_failed', data: { taskId: begun.taskId } });
        const said = await this.#askedHere(seen.asks);
        await once(`answer ${round}`, () => this.#tell(begun, round, seen.asks, said));
      }
    } catch (error) {
      await this.#passOn(begun.taskId);
      throw error;
    }
  }

  /** Sends the message. When the answer is lost, the task is looked up, since the agent may have the message. */
  async #begin(): Promise<Begun> {
    const { signal } = this.#context;
    try {
      return begunBy(await this.#client.send(this.#message(), signal));
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      for (const napMs of LOOK_UP_AFTER_MS) {
        await wait(napMs, undefined, { signal });
        const task = await this.#find().catch(() => undefined);
        if (task !== undefined) return { taskId: task.id, contextId: task.contextId };
      }
      throw error;
    }
  }

  /**
   * Finds out what became of a message whose answer is not known. After a crash the task that it has begun is recorded, and the next attempt follows it.
   * @param isHere true when this process has made the call, which then has no next attempt.
   */
  async lookUp(isHere: boolean): Promise<Reconciled> {
    let begun: Begun;
    try {
      begun = await bound(this.#context).once<Begun>('task', async () => {
        const task = await this.#find();
        if (task === undefined) throw new NotFound();
        return { taskId: task.id, contextId: task.contextId };
      });
    } catch (error) {
      if (error instanceof NotFound) return { status: 'not_done' };
      // An agent that does not list its tasks cannot be asked.
      if (error instanceof ToolFailure) return { status: 'unknown' };
      throw error;
    }
    if ('answer' in begun) return { status: 'done', value: begun.answer };
    if (!isHere) return { status: 'not_done' };
    const seen = lookedAt(await this.#follow(begun.taskId));
    if ('value' in seen) return { status: 'done', value: seen.value };
    return { status: 'failure' in seen ? 'not_done' : 'unknown' };
  }

  #message(): A2aMessage {
    const { message, contextId } = this.#args;
    return {
      messageId: this.#context.idempotencyKey,
      role: 'ROLE_USER',
      parts: [{ text: String(message) }],
      ...(typeof contextId === 'string' && contextId !== '' && { contextId }),
    };
  }

  /** @throws ToolFailure when the agent does not say which messages its tasks have heard. */
  async #find(): Promise<Task | undefined> {
    const { contextId } = this.#args;
    const { idempotencyKey, signal } = this.#context;
    let token = '';
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const { tasks, next } = await this.#client.list(
        typeof contextId === 'string' ? contextId : undefined,
        token,
        signal,
      );
      const found = tasks.find(({ history = [] }) => history.some(({ messageId }) => messageId === idempotencyKey));
      if (found !== undefined) return found;
      if (tasks.some(({ history = [] }) => history.length === 0))
        throw new ToolFailure('The agent does not tell what its tasks were asked.');
      if (next === '') return undefined;
      token = next;
    }
    throw new ToolFailure('The agent has too many tasks to find the one that is meant.');
  }

  /** Polls until the task has ended or asks something. */
  async #follow(id: string): Promise<Task> {
    const { signal } = this.#context;
    for (let napMs = FIRST_LOOK_MS; ; napMs = Math.min(LAST_LOOK_MS, napMs * 2)) {
      const task = await this.#client.get(id, signal).catch((error: unknown) => {
        // After other errors it is safe to look once more.
        if (error instanceof ToolFailure) throw error;
        signal.throwIfAborted();
        return undefined;
      });
      if (task !== undefined && (isTerminal(task.status.state) || isInterrupted(task.status.state))) return task;
      await wait(napMs, undefined, { signal });
    }
  }

  /** Passes the question of the other agent on to the people who answer for this run. */
  async #askedHere({ question, schema, isApproval }: AskedOf): Promise<Json> {
    try {
      return await this.#context.ask({
        question: question.slice(0, 4_000),
        ...(schema === undefined ? {} : { schema }),
      });
    } catch (error) {
      if (isApproval && PilotageError.is(error, 'question_declined')) return { approved: false };
      throw error;
    }
  }

  /** Gives the answer, unless the question is closed: then somebody has answered it already. */
  async #tell(
    { taskId, contextId }: Extract<Begun, { taskId: string }>,
    round: number,
    asks: AskedOf,
    said: Json,
  ): Promise<null> {
    const { signal, idempotencyKey } = this.#context;
    const messageId = `${idempotencyKey}:${round + 1}`;
    const message: A2aMessage = { messageId, role: 'ROLE_USER', taskId, contextId, parts: [partOf(asks, said)] };
    for (;;) {
      const now = lookedAt(await this.#client.get(taskId, signal));
      if (!('asks' in now) || now.asks.state !== asks.state) return null;
      try {
        await this.#client.send(message, signal);
        return null;
      } catch (error) {
        // The next round sees whether the task still asks.
        if (!(error instanceof OutcomeUnknown)) throw error;
        await wait(FIRST_LOOK_MS, undefined, { signal });
      }
    }
  }

  /** Cancels the task when the call was cancelled for good, and not when another process goes on with it. */
  async #passOn(taskId: string): Promise<void> {
    const { signal } = this.#context;
    if (!signal.aborted || !PilotageError.is(signal.reason, 'cancelled')) return;
    const { why, waits } = signal.reason.data ?? {};
    if (waits === true || why === 'closing' || why === 'lost') return;
    await this.#client.cancel(taskId, AbortSignal.timeout(CANCEL_MS)).catch(() => {});
  }
}

class NotFound extends Error {}

/** `once` with types: what is recorded is the JSON of what the work gave. */
function bound(context: ToolContext): {
  once<T extends Json | object>(name: string, work: () => Promise<T>): Promise<T>;
} {
  return { once: (name, work) => context.once(name, work) };
}

function begunBy(sent: Awaited<ReturnType<A2aClient['send']>>): Begun {
  if ('task' in sent) return { taskId: sent.task.id, contextId: sent.task.contextId };
  return { answer: { answer: wordsOf(sent.message.parts) } };
}

type Seen = { readonly value: JsonObject } | { readonly failure: string } | { readonly asks: AskedOf };

/** What is recorded of a task that has ended or asks something. */
function lookedAt({ id, contextId, status, artifacts = [] }: Task): Seen {
  const parts = status.message?.parts ?? [];
  if (status.state === 'TASK_STATE_COMPLETED') {
    const all = artifacts.flatMap((artifact) => artifact.parts);
    const data = all.flatMap((part) => (part.data === undefined ? [] : [part.data]));
    const answer = wordsOf(all) || wordsOf(parts);
    const [only] = data;
    return {
      value: {
        answer,
        taskId: id,
        contextId,
        ...(data.length > 0 && { data: data.length === 1 ? (only ?? null) : data }),
      },
    };
  }
  if (isTerminal(status.state))
    return { failure: `The agent did not do it (${status.state}): ${wordsOf(parts)}`.slice(0, 1_000) };
  return { asks: asksIn(status.state, parts) };
}

function partOf({ token, isApproval }: AskedOf, said: Json): A2aPart {
  if (token === undefined) return typeof said === 'string' ? { text: said } : { data: said };
  return { data: { ...(isJsonObject(said) && isApproval ? said : { value: said }), token } };
}

const YES_OR_NO: JsonObject = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
};

function asksIn(name: string, parts: readonly A2aPart[]): AskedOf {
  const question = wordsOf(parts) || `The agent waits for an answer (${name}).`;
  const data = parts.find((part) => isJsonObject(part.data))?.data;
  const pauses: Json = isJsonObject(data) ? (data['pauses'] ?? null) : null;
  const first = Array.isArray(pauses) ? pauses[0] : undefined;
  if (!isJsonObject(first) || typeof first['token'] !== 'string')
    return { question, isApproval: false, state: `${name} ${question}` };
  const { token, reason, schema } = first;
  const state = token;
  if (reason === 'approval_required') return { question, schema: YES_OR_NO, token, isApproval: true, state };
  // A schema that no validator takes is left out: it keeps nobody from answering.
  if (isJsonObject(schema) && 'validate' in compileSchema(schema))
    return { question, schema, token, isApproval: false, state };
  return { question, isApproval: false, state };
}

function wordsOf(parts: readonly A2aPart[]): string {
  return parts.flatMap(({ text }) => text ?? []).join('\n\n');
}
