/** A tool made ready for dispatch: its options are checked once, and defaults filled in. */
import {
  APPROVAL_TERMS,
  assertTexts,
  captureObject,
  defined,
  describeThrown,
  type Effect,
  isOptionsRecord,
  isReason,
  type JsonObject,
  type Loading,
  microUsdOf,
  PilotageError,
  type ProviderTool,
  shownAmount,
  type ToolSchema,
  whyNoTerms,
  whyNoUsd,
} from '#core';
import { jsonSchemaOf } from '#schema';
import type { Agent, AgentTool, AnyTool } from './agent.ts';
import { agentOfCall } from './background.ts';
import { type NamedHandle, namedHandles } from './handle.ts';
import { assertToolKeys } from './known-keys.ts';
import type { NamedTool } from './provider-tool.ts';
import { checkOf, rankedExamples, type ValueCheck } from './schema.ts';
import type { ApprovalGate, Backoff, ClientTool, Tool } from './tool.ts';

export const DEFAULT_TIMEOUT_MS = 30_000;
export const DEFAULT_RETRIES = 3;

/** A tool made ready: defaults filled in, checks prepared. */
export type ReadyTool = ReadyFunction | ReadyAgentTool;

interface Ready {
  readonly schema: ToolSchema;
  readonly checkArgs: ValueCheck;
  readonly checkValue: ValueCheck | undefined;
  readonly effect: Effect;
  readonly concurrency: number;
  readonly scopes: readonly string[];
  /** The approval that is asked for before a call is made. */
  readonly gate: ApprovalGate | undefined;
  /** Names the call that undoes one. */
  readonly undo: Tool['undo'];
}

/** A tool whose own function carries out its calls. */
export interface ReadyFunction extends Ready {
  readonly timeoutMs: number;
  /** Absent: an attempt may be silent as long as it likes. */
  readonly silence: Pick<Tool, 'firstByteMs' | 'idleMs'> | undefined;
  readonly retries: number;
  /** How often a call is made again that has not happened, also of a `once` tool, and how often `reconcile` is asked again. */
  readonly safeRetries: number;
  readonly backoff: Required<Backoff>;
  readonly costMicroUsd: number;
  /** The handles that the tool needs; absent when it needs none. */
  readonly handles: readonly NamedHandle[] | undefined;
  /** Set when whoever reads the run carries the calls out. */
  readonly client: Pick<ClientTool, 'timeoutMs'> | undefined;
  readonly source: Tool;
}

/** A tool whose calls are tasks. */
export interface ReadyAgentTool extends Ready {
  readonly agent: Agent;
  readonly prompt: AgentTool['prompt'];
  /** A call ends with the id of its task, whose result is told later. */
  readonly background: boolean;
  /** The task makes the call as it is: the arguments are those that were given. */
  readonly isOneCall: boolean;
}

/** A tool that is an object of a class may have a field of that name for itself. */
function isClientTool(tool: AnyTool): tool is ClientTool {
  return 'client' in tool && tool.client === true;
}

export function isAgentTool(tool: unknown): tool is AgentTool {
  return typeof tool === 'object' && tool !== null && 'agent' in tool;
}

/** @throws PilotageError for what no run could use. */
export function readyTool(tool: AnyTool, provider: NamedTool['provider'] | undefined): ReadyTool {
  if (typeof tool?.name !== 'string' || tool.name.trim() === '') {
    throw new PilotageError('tool_name_empty', 'A tool has no name. Give it a name that the model can call.');
  }
  const owner = `The tool ${tool.name}`;
  if (tool.name.startsWith('_')) {
    throw new PilotageError(
      'invalid_config',
      `${owner} has a name that begins with _. Rename it: such names are reserved, as _finish and _spawn_task are.`,
    );
  }
  assertToolKeys(owner, tool);
  if (typeof tool.description !== 'string') {
    throw new PilotageError('invalid_config', `${owner} has no description. Say what it does; the model reads it.`);
  }
  if (isClientTool(tool)) return readyClientTool(tool, owner);
  const { background = false } = tool;
  if (typeof background !== 'boolean') {
    throw new PilotageError('invalid_config', `${owner}: \`background\` must be true or false.`);
  }
  if (background && tool.undo !== undefined) {
    const message = `${owner} is made in the background: leave out undo. Its call ends with the id of a task, before anything is done that could be undone.`;
    throw new PilotageError('invalid_config', message);
  }
  if (!isAgentTool(tool) && background) return backgroundFunction(tool, owner, provider);
  if (!isAgentTool(tool)) {
    const costMicroUsd = priceOf(tool, owner);
    const offered = provider && Object.freeze({ ...provider, costMicroUsd: provider.hosted ? costMicroUsd : 0 });
    // What the provider carries out costs something there; a question whether it may costs nothing.
    return readyFunction(tool, owner, readyOf(tool, owner, offered), provider?.hosted === true ? 0 : costMicroUsd);
  }
  const ready = readyOf(tool, owner);
  const beside = NOT_OF_AGENTS.filter((option) => Reflect.get(tool, option) !== undefined);
  if (beside.length > 0) {
    const message = `${owner} is carried out by an agent: leave out ${beside.join(', ')}. It costs what the agent's runs use, and limits.deadlineMs of the agent is its time.`;
    throw new PilotageError('invalid_config', message);
  }
  if (tool.prompt !== undefined && typeof tool.prompt !== 'function') {
    const message = `${owner} has the prompt ${shownAmount(tool.prompt)}; give a function that makes a text of the arguments.`;
    throw new PilotageError('invalid_config', message);
  }
  return { ...ready, agent: tool.agent, prompt: tool.prompt?.bind(tool), background, isOneCall: false };
}

const NOT_OF_CLIENTS: readonly (keyof Tool)[] = [
  ...(['execute', 'poll', 'reconcile', 'inDoubt', 'handles', 'firstByteMs', 'idleMs'] as const),
  ...(['retries', 'backoff', 'concurrency', 'background', 'costUsd', 'handsOver'] as const),
];

/** What an attempt of a function has. */
const NOT_OF_AGENTS: readonly (keyof Tool)[] = [
  ...(['execute', 'poll', 'reconcile', 'inDoubt', 'handles', 'timeoutMs', 'firstByteMs', 'idleMs'] as const),
  ...(['retries', 'backoff', 'costUsd', 'toModelOutput', 'handsOver'] as const),
];

/** A call of it is made once, by somebody else: how an attempt goes is not ours to say. */
function readyClientTool(tool: ClientTool, owner: string): ReadyFunction {
  const given = tool as Partial<Tool>;
  const beside = [...NOT_OF_CLIENTS, 'agent' as never].filter((option) => given[option] !== undefined);
  if (beside.length > 0) {
    const message = `${owner} is carried out by whoever reads the run (client: true): leave out ${beside.join(', ')}.`;
    throw new PilotageError('invalid_config', message);
  }
  const { timeoutMs } = tool;
  if (timeoutMs !== undefined) assertWhole(owner, { timeoutMs });
  const execute = (): never => {
    throw new PilotageError('invalid_config', `${owner} is carried out by a client.`);
  };
  const source: Tool = { ...tool, execute };
  const ready = readyOf(tool, owner);
  const schema = Object.freeze({ ...ready.schema, client: true as const });
  return { ...readyFunction(source, owner, { ...ready, schema }, 0), client: defined({ timeoutMs }) };
}

/** A function whose calls are made by tasks. It is checked as any other; who approves of a call is asked by the task. */
function backgroundFunction(tool: Tool, owner: string, provider: NamedTool['provider'] | undefined): ReadyAgentTool {
  const { handsOver, toModelOutput } = tool;
  if (provider !== undefined || handsOver !== undefined || toModelOutput !== undefined) {
    const message = `${owner} is made in the background: leave out handsOver and toModelOutput, and tools of a provider. Its result is told as news.`;
    throw new PilotageError('invalid_config', message);
  }
  const { gate: _, ...ready } = readyFunction(tool, owner, readyOf(tool, owner), priceOf(tool, owner));
  const { schema, checkArgs, effect, concurrency, scopes } = ready;
  const prompt = (): string => `Make one call of ${tool.name}.`;
  const own = {
    schema,
    checkArgs,
    effect,
    concurrency,
    scopes,
    checkValue: undefined,
    gate: undefined,
    undo: undefined,
  };
  return { ...own, agent: agentOfCall(tool), prompt, background: true, isOneCall: true };
}

function readyFunction(tool: Tool, owner: string, ready: Ready, costMicroUsd: number): ReadyFunction {
  if (typeof tool.execute !== 'function') {
    throw new PilotageError(
      'tool_without_execute',
      `${owner} has no execute function. Give \`execute\`, which does what the tool is for, or \`client: true\` when whoever reads the run, such as a page, carries its calls out.`,
    );
  }
  if (tool.toModelOutput !== undefined && typeof tool.toModelOutput !== 'function') {
    throw new PilotageError(
      'invalid_config',
      `${owner}: \`toModelOutput\` must be a function of { toolCallId, input, output }.`,
    );
  }
  if (tool.poll !== undefined && typeof tool.poll !== 'function') {
    throw new PilotageError('invalid_config', `${owner}: \`poll\` must be a function of (key, args, context).`);
  }
  // An agent is looked at where agents are gathered.
  if (tool.handsOver !== undefined && !tool.handsOver?.to) {
    throw new PilotageError('invalid_config', `${owner} hands over to nobody. Make it with handoff(agent).`);
  }
  const { timeoutMs = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES } = tool;
  assertWhole(owner, { timeoutMs, retries });
  const silence = defined({ firstByteMs: tool.firstByteMs, idleMs: tool.idleMs });
  assertWhole(owner, silence);
  const backoff = backoffOf(tool, owner);
  if (tool.inDoubt !== undefined && tool.inDoubt !== 'hold' && tool.inDoubt !== 'tell') {
    throw new PilotageError('invalid_config', `${owner}: \`inDoubt\` must be 'hold' or 'tell'.`);
  }
  const handles = namedHandles(tool.handles, owner);
  const tries = { retries: ready.effect === 'once' ? 0 : retries, safeRetries: retries };
  const silent = Object.keys(silence).length === 0 ? undefined : silence;
  return {
    ...ready,
    timeoutMs,
    silence: silent,
    ...tries,
    backoff,
    costMicroUsd,
    handles,
    client: undefined,
    source: tool,
  };
}

/** The price in millionths of a US dollar. It is checked, since a wrong price would make calls free. */
function priceOf(tool: Tool, owner: string): number {
  const { costUsd = 0 } = tool;
  const why = whyNoUsd(costUsd);
  if (why === undefined) return microUsdOf(costUsd);
  throw new PilotageError('invalid_config', `${owner} has the price costUsd ${shownAmount(costUsd)}; ${why}.`);
}

function backoffOf({ backoff = {} }: Tool, owner: string): Required<Backoff> {
  if (isOptionsRecord(backoff)) {
    const { baseMs = 100, multiplier = 2, maxMs = 30_000 }: Backoff = backoff;
    if (isAtLeast(baseMs, 0) && isAtLeast(multiplier, 1) && isAtLeast(maxMs, 0)) return { baseMs, multiplier, maxMs };
  }
  throw new PilotageError(
    'invalid_config',
    `${owner}: \`backoff\` must be { baseMs, multiplier, maxMs }, with milliseconds from 0 up and a multiplier from 1 up.`,
  );
}

function isAtLeast(value: number, least: number): boolean {
  return Number.isFinite(value) && value >= least;
}

function readyOf(tool: AnyTool & Pick<Tool, 'concurrency'>, owner: string, provider?: ProviderTool): Ready {
  const { effect = 'once', loading = 'always', concurrency = Number.POSITIVE_INFINITY } = tool;
  if (tool.concurrency !== undefined) assertWhole(owner, { concurrency });
  assertEffect(owner, effect);
  assertLoading(owner, loading);
  const { scopes = [], tags = [], mimeTypes } = tool;
  assertTexts(`${owner}: \`scopes\``, scopes, "['mail.send']");
  assertTexts(`${owner}: \`tags\``, tags, "['mail']");
  if (mimeTypes !== undefined) assertTexts(`${owner}: \`mimeTypes\``, mimeTypes, "['text/csv']");
  const inputSchema = jsonSchemaOf(tool.inputSchema, owner);
  const checkArgs = checkOf(tool.inputSchema, owner);
  const { name, description } = tool;
  return {
    schema: Object.freeze({
      name,
      description,
      inputSchema,
      effect,
      loading,
      tags: Object.freeze([...tags]),
      examples: rankedExamples(tool, inputSchema, checkArgs),
      ...(mimeTypes === undefined ? {} : { mimeTypes: Object.freeze([...mimeTypes]) }),
      ...defined({ provider, providerOptions: providerOptionsOf(tool, owner) }),
    }),
    checkArgs,
    checkValue: tool.outputSchema === undefined ? undefined : checkOf(tool.outputSchema, `${owner}'s output`),
    effect,
    concurrency,
    scopes,
    gate: gateOf(tool, owner),
    undo: undoOf(tool, owner),
  };
}

function providerOptionsOf({ providerOptions }: AnyTool, owner: string): JsonObject | undefined {
  if (providerOptions === undefined) return undefined;
  const why = `${owner} has providerOptions that are no options by the name of a provider, such as { anthropic: { deferLoading: true } }`;
  if (!isOptionsRecord(providerOptions) || !Object.values(providerOptions).every(isOptionsRecord)) {
    throw new PilotageError('invalid_config', `${why}.`);
  }
  try {
    return captureObject(providerOptions, 'providerOptions').json;
  } catch (cause) {
    throw new PilotageError('invalid_config', `${why}: ${describeThrown(cause)}`, { cause });
  }
}

function gateOf({ needsApproval }: AnyTool, owner: string): ApprovalGate | undefined {
  if (needsApproval === undefined || needsApproval === false) return undefined;
  if (needsApproval === true) return {};
  if (typeof needsApproval === 'function') return { when: needsApproval };
  const wrong = whyNoGate(needsApproval);
  if (wrong === undefined) return needsApproval as ApprovalGate;
  throw new PilotageError(
    'invalid_config',
    `${owner}: \`needsApproval\` must be true, a function, or { ${GATE.join(', ')} }: ${wrong}.`,
  );
}

function undoOf(tool: AnyTool, owner: string): Tool['undo'] {
  if (tool.undo === undefined || typeof tool.undo === 'function') return tool.undo?.bind(tool) as Tool['undo'];
  throw new PilotageError(
    'invalid_config',
    `${owner}: \`undo\` must be a function of (args, value) that gives { tool, args }.`,
  );
}

const GATE: readonly string[] = ['when', 'reason', 'onReject', ...APPROVAL_TERMS];

function whyNoGate(given: unknown): string | undefined {
  if (typeof given !== 'object' || given === null) return 'it is something else';
  const { when, reason, onReject = 'tell' } = given as ApprovalGate;
  if (when !== undefined && typeof when !== 'function') return 'when must be a function';
  if (reason !== undefined && reason !== '' && !isReason(reason))
    return 'reason must be a text of at most 1,000 characters';
  if (onReject !== 'tell' && onReject !== 'end') return "onReject must be 'tell' or 'end'";
  return whyNoTerms(given);
}

function assertEffect(owner: string, effect: string): void {
  if (effect === 'pure' || effect === 'read' || effect === 'keyed' || effect === 'once') return;
  throw new PilotageError(
    'invalid_config',
    `${owner} has the effect ${JSON.stringify(effect)}; use pure, read, keyed or once.`,
  );
}

function assertLoading(owner: string, loading: Loading): void {
  if (loading === 'always' || loading === 'deferred') return;
  throw new PilotageError(
    'invalid_config',
    `${owner} has the loading ${JSON.stringify(loading)}; use always or deferred.`,
  );
}

function assertWhole(owner: string, values: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(values)) {
    const least = name === 'retries' ? 0 : 1;
    if (Number.isInteger(value) && value >= least) continue;
    throw new PilotageError('invalid_config', `${owner} has ${name} ${value}; give a whole number from ${least} up.`);
  }
}
