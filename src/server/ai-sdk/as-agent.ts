/**
 * An agent of a runtime as the AI SDK's `Agent`, for whatever takes one. Each call starts a run; a call whose messages end with answers to approvals goes on
 * with the run that has asked.
 */
import type { FinishReason, GenerateTextResult, ModelMessage, Agent as SdkAgent, StreamTextResult, ToolSet } from 'ai';
import {
  assertOptions,
  defined,
  type Identity,
  type Json,
  type JsonObject,
  type OptionShape,
  PilotageError,
} from '#core';
import { artifactUrl, TurnChunks, type UIChunk } from '#messages';
import type { GivenTurn, Run, Runtime, StartOptions } from '#runtime';
import { explainSchemaError, firstIssues, schemaErrors } from '#schema';
import type { Agent, Tool } from '#tools';
import { type ErrorText, plainErrorText } from '../problem.ts';
import { SdkParts, type SdkStep, type StreamPart } from './agent-parts.ts';
import { type AgentEnd, AgentResult } from './agent-result.ts';

export interface AsAgentOptions {
  /** The agent, or its name. Default: that of the runtime. Given as an object, its tools are those of the `Agent`. */
  readonly agent?: Agent | string;
  /** Whose runs are started. Default: tenant and user are named `local`. */
  readonly identity?: Pick<Identity, 'tenant' | 'user'>;
  /** Further options for starting runs, such as limits and the context. */
  readonly start?: Omit<StartOptions, 'agent' | 'identity' | 'history' | 'signal'>;
  /** Makes the text about an error that a run has recorded. Default: that something went wrong, with the code. */
  readonly errorText?: ErrorText;
}

const OPTIONS: OptionShape<AsAgentOptions> = {
  agent: 'any?',
  identity: 'object?',
  start: 'object?',
  errorText: 'function?',
};
/** The size of a page of waits. */
const WAITS = 200;
const APPROVALS: ReadonlySet<string> = new Set(['tool-approval-request', 'tool-approval-response']);
const SCHEMA = Symbol.for('vercel.ai.schema');

type Generated = GenerateTextResult<ToolSet, Record<string, unknown>, never>;
type Streamed = StreamTextResult<ToolSet, Record<string, unknown>, never>;

/** What an `Agent` of the AI SDK is called with. */
interface Asked {
  readonly prompt?: string | readonly ModelMessage[];
  readonly messages?: readonly ModelMessage[];
  readonly abortSignal?: AbortSignal;
  readonly timeout?: number | { readonly totalMs?: number };
  readonly experimental_transform?: unknown;
  readonly onStepEnd?: (step: never) => unknown;
  readonly onStepFinish?: (step: never) => unknown;
}

/** @throws PilotageError `invalid_config`. */
export function asAgent(runtime: Runtime, options: AsAgentOptions = {}): SdkAgent<never, ToolSet> {
  assertOptions('asAgent', options, OPTIONS);
  const { agent } = options;
  const name = typeof agent === 'string' ? agent : agent?.name;
  const tools = typeof agent === 'object' ? toolsOf(agent) : {};
  const begin = (asked: Asked): Promise<AgentResult> => call(runtime, { ...options, ...defined({ name }) }, asked);
  return {
    version: 'agent-v1',
    id: name,
    tools,
    stream: async (asked) => (await begin(asked as unknown as Asked)) as unknown as Streamed,
    generate: async (asked) => (await (await begin(asked as unknown as Asked)).whole()) as unknown as Generated,
  };
}

/** The tools of the agent, with their schemas in the form of the AI SDK. Nothing of its package is loaded. */
function toolsOf({ tools }: Agent): ToolSet {
  const list = Array.isArray(tools)
    ? (tools as readonly Tool[]).map((tool) => [tool.name, tool] as const)
    : Object.entries(tools);
  const made = list.map(([name, tool]) => {
    const { description, inputSchema } = tool as Pick<Tool, 'description' | 'inputSchema'>;
    const isReady = typeof inputSchema === 'function' || '~standard' in inputSchema || SCHEMA in inputSchema;
    const schema = isReady
      ? inputSchema
      : { [SCHEMA]: true, jsonSchema: inputSchema, validate: checkOf(inputSchema as JsonObject) };
    return [name, { description, inputSchema: schema }];
  });
  return Object.fromEntries(made) as ToolSet;
}

function checkOf(schema: JsonObject) {
  return (value: unknown) => {
    const errors = schemaErrors(schema, value as Json);
    if (errors.length === 0) return { success: true, value };
    return { success: false, error: new Error(firstIssues(errors.map(explainSchemaError))) };
  };
}

type Ready = AsAgentOptions & { readonly name?: string };

async function call(runtime: Runtime, options: Ready, asked: Asked): Promise<AgentResult> {
  if (asked.experimental_transform !== undefined)
    throw new PilotageError('invalid_config', 'experimental_transform is not supported here. Transform result.stream.');
  const messages: readonly ModelMessage[] =
    typeof asked.prompt === 'string'
      ? [{ role: 'user', content: asked.prompt }]
      : (asked.prompt ?? asked.messages ?? []);
  const answers = answersAtEnd(messages);
  const { run, from } =
    answers.length > 0 ? await goOn(runtime, options, answers) : await begin(runtime, options, messages);
  cancelOn(run, asked);
  return read(run, options, { from, messages, ...defined({ onStepEnd: asked.onStepEnd ?? asked.onStepFinish }) });
}

async function begin(
  runtime: Runtime,
  options: Ready,
  messages: readonly ModelMessage[],
): Promise<{ run: Run; from: number }> {
  const last = messages.at(-1);
  if (last?.role !== 'user')
    throw new PilotageError(
      'invalid_config',
      'The messages must end with one of the user, or with answers to approvals.',
    );
  const { tenant, user } = options.identity ?? { tenant: 'local', user: 'local' };
  const id = crypto.randomUUID();
  const history = messages.slice(0, -1).flatMap(withoutApprovals);
  const parts = typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : last.content;
  const texts = parts.flatMap((part) => (part.type === 'text' && 'text' in part ? [part.text] : []));
  if (texts.length !== parts.length)
    throw new PilotageError('invalid_config', 'The last message has files. Give those as inputs of the run (start).');
  const run = await runtime.start(texts.join('\n'), {
    ...options.start,
    identity: { tenant, user, session: `agent-${id}`, run: `run_${id}` },
    ...defined({ agent: options.name, history: history.length === 0 ? undefined : history }),
  });
  return { run, from: 1 };
}

/** What came of approvals stands in the results of their calls. */
function withoutApprovals(message: ModelMessage): readonly GivenTurn[] {
  if (typeof message.content === 'string') return [message as GivenTurn];
  const content = message.content.filter(({ type }) => !APPROVALS.has(type));
  return content.length === 0 ? [] : [{ ...message, content } as unknown as GivenTurn];
}

interface Answer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string;
  /** Its call has a result: clients send what they answered before once more. */
  readonly isKnown: boolean;
}

function answersAtEnd(messages: readonly ModelMessage[]): readonly Answer[] {
  const last = messages.at(-1);
  if (last?.role !== 'tool') return [];
  const parts = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : [...content]));
  const ended = new Set(parts.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])));
  const known = new Set(
    parts.flatMap((part) =>
      part.type === 'tool-approval-request' && ended.has(part.toolCallId) ? [part.approvalId] : [],
    ),
  );
  return last.content
    .filter((part) => part.type === 'tool-approval-response')
    .map((part) => ({ ...part, isKnown: known.has(part.approvalId) }));
}

async function goOn(
  runtime: Runtime,
  { identity }: Ready,
  answers: readonly Answer[],
): Promise<{ run: Run; from: number }> {
  const { tenant, user } = identity ?? { tenant: 'local', user: 'local' };
  const asked = await runsAsking(
    runtime,
    { tenant, user },
    answers.map(({ approvalId }) => approvalId),
  );
  const open = answers.filter(({ approvalId }) => asked.has(approvalId));
  const [first] = open;
  const id = first && asked.get(first.approvalId)?.root;
  if (id === undefined || answers.some(({ approvalId, isKnown }) => !isKnown && !asked.has(approvalId)))
    throw new PilotageError('pause_not_found', 'No run waits for one of these approvals.');
  const run = runtime.run(id);
  const { head } = await run.record();
  for (const { approvalId, approved, reason } of open) {
    const handle = runtime.run(asked.get(approvalId)?.run ?? run.id);
    await (approved ? handle.approve(approvalId, defined({ reason })) : handle.reject(approvalId, defined({ reason })));
  }
  return { run, from: head + 1 };
}

/** The runs that ask these questions, each with its root: a question of a task belongs to the run that has started the task. */
async function runsAsking(
  runtime: Runtime,
  owner: Pick<Identity, 'tenant' | 'user'>,
  tokens: readonly string[],
): Promise<ReadonlyMap<string, { readonly run: string; readonly root: string }>> {
  const found = new Map<string, { run: string; root: string }>();
  let after: number | undefined;
  do {
    const page = await runtime.waiting({ ...owner, limit: WAITS, ...defined({ after }) });
    for (const { token, run } of page) {
      if (token === undefined || !tokens.includes(token)) continue;
      found.set(token, { run, root: (await runtime.run(run).record()).root ?? run });
    }
    after = page.length < WAITS ? undefined : page.at(-1)?.number;
  } while (after !== undefined && found.size < tokens.length);
  return found;
}

/** Cancels the run when the call is aborted or takes too long, as callers of the AI SDK expect. */
function cancelOn(run: Run, { abortSignal, timeout }: Asked): void {
  const ms = typeof timeout === 'number' ? timeout : timeout?.totalMs;
  const signals = [abortSignal, ms === undefined ? undefined : AbortSignal.timeout(ms)].filter(
    (each) => each !== undefined,
  );
  const cancel = (): void => void run.cancel().catch(() => {});
  for (const signal of signals) {
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
  }
}

interface Reading {
  readonly from: number;
  readonly messages: readonly ModelMessage[];
  readonly onStepEnd?: (step: never) => unknown;
}

function read(
  run: Run,
  { name = 'agent', errorText = plainErrorText }: Ready,
  { from, onStepEnd }: Reading,
): AgentResult {
  return new AgentResult(async (tell) => {
    let isTold = from === 1;
    let told = 0;
    const parts = new SdkParts((part) => tell(part), { agent: name });
    const silent = new SdkParts(() => {}, { agent: name });
    let steps: readonly SdkStep[] = [];
    const chunk = (each: UIChunk): void => {
      if (isTold) parts.chunk(each);
      else silent.chunk(each);
    };
    const chunks = new TurnChunks({ chunk }, { errorText, fileUrl: artifactUrl, keepsCallIds: true });
    const step = (): void => {
      ({ steps } = parts);
      for (; told < steps.length; told += 1) onStepEnd?.(steps[told] as never);
    };
    for await (const event of run.events({ tasks: true })) {
      if (!isTold && event.seq >= from && event.path === undefined) {
        isTold = true;
        parts.adopt(silent);
        tell({ type: 'start' });
      }
      (isTold ? parts : silent).hear(event);
      chunks.hear(event);
      step();
    }
    const last = chunks.end();
    step();
    return ended(last, parts, tell);
  });
}

function ended(last: UIChunk | undefined, parts: SdkParts, tell: (part: StreamPart) => void): AgentEnd {
  const { steps, totalUsage } = parts;
  if (last?.type === 'error') {
    const error = new Error(last.errorText);
    tell({ type: 'error', error });
    return { steps, totalUsage, finishReason: 'error', error };
  }
  if (last?.type === 'abort') {
    tell({ type: 'abort' });
    return { steps, totalUsage, finishReason: 'other' };
  }
  const finishReason: FinishReason = last?.type === 'finish' ? last.finishReason : 'other';
  tell({ type: 'finish', finishReason, rawFinishReason: undefined, totalUsage });
  return { steps, totalUsage, finishReason };
}
