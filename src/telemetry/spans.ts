/**
 * What a span says, by the semantic conventions of OpenTelemetry for generative AI
 * (https://github.com/open-telemetry/semantic-conventions-genai). Names that begin with `pilotage.` are ours.
 */
import type { Attributes } from '@opentelemetry/api';
import type { CallResult, Decision, Entry, ErrorData, Json, Moved, TracedAbout, TracedRun, Usage } from '#core';

/** What a span is made of. Times are milliseconds since the epoch. */
export interface SpanFacts {
  readonly name: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
  readonly isOfModel?: boolean;
  /** A stable code: why what the span tells of did not succeed. */
  readonly errorType?: string;
}

export type EndEntry = Extract<Entry, { readonly kind: 'finished' | 'failed' }>;
export type CallEntry = Extract<Entry, { readonly kind: 'call_ended' | 'call_away' | 'call_waits' }>;

/** The names of providers in the conventions, by how packages of the AI SDK begin theirs. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'aws.bedrock',
  azure: 'azure.ai.openai',
  'azure-openai': 'azure.ai.openai',
  google: 'gcp.gemini',
  mistral: 'mistral_ai',
  vertex: 'gcp.vertex_ai',
  xai: 'x_ai',
};

function providerName(given: string): string {
  if (given.startsWith('google.vertex')) return 'gcp.vertex_ai';
  const [vendor = given] = given.split('.');
  return PROVIDERS[vendor] ?? vendor;
}

/** The whole run, from its start to its end. @param content whether it says what was asked and answered. */
export function runSpan(run: TracedRun, ending: EndEntry | undefined, content: boolean): SpanFacts {
  const { agent, identity, query, startedAt } = run;
  const attributes: Attributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': agent,
    'gen_ai.conversation.id': identity.session,
    'pilotage.run.id': identity.run,
    'pilotage.tenant.id': identity.tenant,
  };
  if (content) attributes['gen_ai.input.messages'] = messages('user', [{ type: 'text', content: query }]);
  const facts = { name: `invoke_agent ${agent}`, startedAt, endedAt: ending?.at ?? startedAt, attributes };
  if (ending === undefined) return facts;
  if (ending.kind === 'failed') return { ...facts, errorType: ending.error.code };
  attributes['pilotage.finish_reason'] = ending.reason;
  if (content && ending.payload !== undefined) {
    attributes['gen_ai.output.messages'] = messages('assistant', [{ type: 'text', content: textOf(ending.payload) }]);
  }
  return GOOD_ENDS.has(ending.reason) ? facts : { ...facts, errorType: ending.reason };
}

/** Nothing went wrong. */
const GOOD_ENDS: ReadonlySet<string> = new Set(['goal', 'cancelled', 'continued', 'handed_over']);

/** What a planner was asked, as far as nobody knows whether a model was. */
export function planSpan(run: TracedRun, step: number): Pick<SpanFacts, 'name' | 'attributes'> {
  const attributes = { 'gen_ai.operation.name': 'plan', 'gen_ai.agent.name': run.agent, ...ofRun(run, step) };
  return { name: `plan ${run.agent}`, attributes };
}

/** A move, and when it was whole: what a model was asked and said, or what another planner decided. */
export function moveSpan(
  run: TracedRun,
  moved: Moved & Pick<Entry, 'at'>,
  provider: string | undefined,
  content: boolean,
): SpanFacts {
  const { step, startedAt, provenance = {}, usage } = moved;
  const { model, modelName = model, finish, providerFinish = finish } = provenance;
  const error = moved.fault ?? moved.rejected;
  const facts = { startedAt, endedAt: moved.at, ...(error === undefined ? {} : { errorType: error.code }) };
  if (typeof model !== 'string' || typeof modelName !== 'string') return { ...facts, ...planSpan(run, step) };
  const attributes: Attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': providerName(provider ?? 'unknown'),
    'gen_ai.request.model': modelName,
    'gen_ai.response.model': model,
    'gen_ai.conversation.id': run.identity.session,
    ...usageAttributes(usage),
    ...ofRun(run, step),
  };
  if (typeof providerFinish === 'string') attributes['gen_ai.response.finish_reasons'] = [providerFinish];
  if (content) attributes['gen_ai.output.messages'] = messages('assistant', saidIn(moved), providerFinish);
  return { ...facts, name: `chat ${modelName}`, attributes, isOfModel: true };
}

/**
 * A call, or the part of it that ends with the entry: the time for which a call waits is in no span.
 * `undefined` for what no function and no agent carries out.
 */
export function callSpan(
  run: TracedRun,
  entry: CallEntry,
  { tool, args, callId, wentOnAt }: TracedAbout,
  content: boolean,
): SpanFacts | undefined {
  const goesOn = entry.kind === 'call_waits' && entry.held === true;
  const isSkipped = entry.kind === 'call_ended' && entry.outcome.kind === 'skipped';
  if (tool === undefined || goesOn || isSkipped) return undefined;
  const error = errorIn(entry);
  // What the model only made up gives no names of spans.
  const name = error?.code === 'tool_not_found' ? '_OTHER' : tool;
  const attributes: Attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'gen_ai.tool.call.id': callId ?? `${entry.step}.${entry.call}`,
    'gen_ai.tool.type': 'function',
    ...ofRun(run, entry.step),
    'pilotage.call': entry.call,
  };
  if ('attempts' in entry) attributes['pilotage.attempts'] = entry.attempts;
  if (entry.kind === 'call_waits') attributes['pilotage.waits_for'] = entry.waits.map((wait) => wait.for);
  if (entry.kind === 'call_ended') attributes['pilotage.outcome'] = entry.outcome.kind;
  if (content) {
    if (args !== undefined) attributes['gen_ai.tool.call.arguments'] = JSON.stringify(args);
    const value = entry.kind === 'call_ended' && entry.outcome.kind === 'value' ? entry.outcome.value : undefined;
    if (value !== undefined) attributes['gen_ai.tool.call.result'] = JSON.stringify(value);
  }
  const endedAt = entry.kind === 'call_away' ? entry.failedAt : entry.at;
  const startedAt = Math.min(Math.max(entry.startedAt ?? endedAt, wentOnAt ?? 0), endedAt);
  const facts = { name: `execute_tool ${name}`, startedAt, endedAt, attributes };
  return error === undefined ? facts : { ...facts, errorType: error.code };
}

function errorIn(entry: CallEntry): ErrorData | undefined {
  if (entry.kind === 'call_away') return entry.error;
  if (entry.kind === 'call_waits') return undefined;
  const { outcome }: CallResult = entry;
  return outcome.kind === 'error' || outcome.kind === 'unknown' ? outcome.error : undefined;
}

function ofRun({ identity }: TracedRun, step: number): Attributes {
  return { 'pilotage.run.id': identity.run, 'pilotage.step': step };
}

function usageAttributes(usage: Usage = {}): Attributes {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens, reasoningTokens, costMicroUsd } = usage;
  const all = {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cachedInputTokens,
    'gen_ai.usage.cache_creation.input_tokens': cacheWriteInputTokens,
    'gen_ai.usage.reasoning.output_tokens': reasoningTokens,
    'pilotage.usage.cost_micro_usd': costMicroUsd,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

type MessagePart = { readonly type: string; readonly [key: string]: unknown };

function messages(role: 'user' | 'assistant', parts: readonly MessagePart[], finish?: Json): string {
  return JSON.stringify([{ role, parts, ...(finish === undefined ? {} : { finish_reason: finish }) }]);
}

function saidIn({ text, reasoning, decision }: Moved): readonly MessagePart[] {
  return [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning', content: reasoning }]),
    ...(text === undefined ? [] : [{ type: 'text', content: text }]),
    ...callsIn(decision),
  ];
}

function callsIn(decision: Decision): readonly MessagePart[] {
  if (decision.kind === 'finish') {
    return decision.payload === undefined ? [] : [{ type: 'text', content: textOf(decision.payload as Json) }];
  }
  const calls = decision.kind === 'call_parallel' ? decision.branches : decision.kind === 'call_tool' ? [decision] : [];
  return calls.map(({ callId, tool, args }) => ({
    type: 'tool_call',
    id: callId ?? null,
    name: tool,
    arguments: args,
  }));
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
