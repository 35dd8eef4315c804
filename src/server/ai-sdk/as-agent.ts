/**
 * An agent of a runtime as the AI SDK's `Agent`, for whatever takes one. Each call starts a run; a call whose messages end with answers to approvals, or with
 * results of the client's own tools, goes on with the run that has asked.
 */
import type { ModelMessage, Agent as SdkAgent, ToolSet } from 'ai';
import {
  assertOptions,
  defined,
  type Identity,
  type Json,
  type JsonObject,
  type OptionShape,
  PilotageError,
} from '#core';
import type { GivenTurn, Run, Runtime, StartOptions } from '#runtime';
import { explainSchemaError, firstIssues, schemaErrors } from '#schema';
import type { Agent, Tool } from '#tools';
import { type ErrorText, plainErrorText } from '../problem.ts';
import { giveAtEnd, modelCallId } from './agent-answers.ts';
import { AgentReader } from './agent-reader.ts';
import { AgentResult, type Generated, type Presenting, type Streamed } from './agent-result.ts';

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
const APPROVALS: ReadonlySet<string> = new Set(['tool-approval-request', 'tool-approval-response']);
const SCHEMA = Symbol.for('vercel.ai.schema');

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
  const begin = (asked: unknown, sdk?: Presenting['sdk']): Promise<AgentResult> =>
    call(runtime, { ...options, ...defined({ name }), presenting: { tools, ...defined({ sdk }) } }, asked as Asked);
  return {
    version: 'agent-v1',
    id: name,
    tools,
    stream: async (asked) => {
      const sdk = await loadSdk();
      const result: Record<keyof Streamed, unknown> = await begin(asked, sdk);
      return result as unknown as Streamed;
    },
    generate: async (asked) => {
      const result: Record<keyof Generated, unknown> = await (await begin(asked)).whole();
      return result as unknown as Generated;
    },
  };
}

/** Whoever only reads the stream does without the package. */
async function loadSdk(): Promise<typeof import('ai') | undefined> {
  try {
    return await import('ai');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
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

interface Ready extends AsAgentOptions {
  readonly name?: string;
  readonly presenting: Presenting;
}

async function call(runtime: Runtime, options: Ready, asked: Asked): Promise<AgentResult> {
  if (asked.experimental_transform !== undefined)
    throw new PilotageError('invalid_config', 'experimental_transform is not supported here. Transform result.stream.');
  const messages: readonly ModelMessage[] =
    typeof asked.prompt === 'string'
      ? [{ role: 'user', content: asked.prompt }]
      : (asked.prompt ?? asked.messages ?? []);
  const { tenant, user } = options.identity ?? { tenant: 'local', user: 'local' };
  const going = await giveAtEnd(runtime, { tenant, user }, messages, asked.abortSignal);
  const run = going?.run ?? (await begin(runtime, options, { tenant, user }, messages));
  cancelOn(run, asked);
  const { name = 'agent', errorText = plainErrorText, presenting } = options;
  const onStepEnd = asked.onStepEnd ?? asked.onStepFinish;
  const reader = new AgentReader({ run, agent: name, errorText, ...defined({ going, onStepEnd }) });
  return new AgentResult((sink) => reader.read(sink), presenting);
}

async function begin(
  runtime: Runtime,
  options: Ready,
  owner: Pick<Identity, 'tenant' | 'user'>,
  messages: readonly ModelMessage[],
): Promise<Run> {
  const last = messages.at(-1);
  if (last?.role !== 'user')
    throw new PilotageError(
      'invalid_config',
      "The messages must end with one of the user, or with answers to approvals, or results of the client's tools, for calls that asAgent has told.",
    );
  const id = crypto.randomUUID();
  const history = messages.slice(0, -1).flatMap(asHistory);
  const parts = typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : last.content;
  const texts = parts.flatMap((part) => (part.type === 'text' && 'text' in part ? [part.text] : []));
  if (texts.length !== parts.length)
    throw new PilotageError('invalid_config', 'The last message has files. Give those as inputs of the run (start).');
  return runtime.start(texts.join('\n'), {
    ...options.start,
    identity: { ...owner, session: `agent-${id}`, run: `run_${id}` },
    ...defined({ agent: options.name, history: history.length === 0 ? undefined : history }),
  });
}

/** What came of approvals stands in the results of their calls, and calls have the ids that their model has given them. */
function asHistory(message: ModelMessage): readonly GivenTurn[] {
  if (typeof message.content === 'string') return [message as GivenTurn];
  const content = message.content
    .filter(({ type }) => !APPROVALS.has(type))
    .map((part) => ('toolCallId' in part ? { ...part, toolCallId: modelCallId(part.toolCallId) } : part));
  return content.length === 0 ? [] : [{ ...message, content } as unknown as GivenTurn];
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
