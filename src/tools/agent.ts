/** Agents: a planner with tools, limits and a name. */
import {
  asPlanner,
  assertKnownKeys,
  assertOptions,
  assertUndoOptions,
  boundTo,
  defined,
  type GivenPlanner,
  type Identity,
  isJsonObject,
  type Json,
  type Limits,
  MAX_AT_ONCE,
  type OptionShape,
  PilotageError,
  type Planner,
  readOptions,
  shownAmount,
  type UndoOptions,
  whyNoUsd,
} from '#core';
import type { ClientTool, InputOf, InputSchema, TextInput, Tool, ToolOptions } from './tool.ts';
import type { UnnamedTool } from './unnamed-tool.ts';

/** The most that a run of an agent may use. If the run is started with limits too, the smaller value counts on each axis. */
export interface AgentLimits extends Pick<Limits, 'steps' | 'calls' | 'costUsd' | 'tokens'> {
  /** Milliseconds from the start of the run; of a turn of a session, from when its turn has come. */
  readonly deadlineMs?: number;
}

/** A planner with tools of its own, limits and a name. Its runs see these tools and no others. */
export interface Agent extends UndoOptions {
  /** Every run records the name of its agent, and goes on with the agent of that name. */
  readonly name: string;
  readonly planner: Planner;
  /** The tools: a list, or an object of tools by their names, whose values may be AI SDK `tool()` objects. */
  readonly tools: ToolSet;
  readonly limits?: AgentLimits;
  /** How many calls of one step may run at once, 1 to 50. Default 50, or the runtime's limit when that is lower. */
  readonly parallelCalls?: number;
  /**
   * Checks `context.args` of a run that is started with the agent (`undefined` when none were given), and returns the arguments that
   * the planner gets. @throws the error that `Runtime.start` then throws; nothing is stored.
   */
  readArgs?(args: Json | undefined, identity: Identity): Json | Promise<Json>;
}

/**
 * A tool whose calls are each carried out by a run, which is a task of the calling run. That run gets the arguments as
 * `context.args`, may pause, and goes on after a crash where it was. Its result is the value of the call.
 */
export interface AgentTool<S extends InputSchema = InputSchema>
  extends Omit<
    ToolOptions<S>,
    | 'execute'
    | 'toModelOutput'
    | 'handsOver'
    | 'reconcile'
    | 'poll'
    | 'inDoubt'
    | 'timeoutMs'
    | 'firstByteMs'
    | 'idleMs'
    | 'retries'
    | 'backoff'
    | 'costUsd'
    | 'handles'
  > {
  /** The agent whose runs carry out the calls. */
  readonly agent: Agent;
  /** True: a call ends at once with `{ task: id }`, and the result is told as that of a background task. Default false. */
  readonly background?: boolean;
  /**
   * Makes of the arguments what the run is asked: its query, which a model reads as the user's message. Default: the text `input` where
   * that is the only argument; otherwise the arguments as JSON in a frame. What it throws is the error of the call.
   */
  prompt?(args: InputOf<S>): string;
}

export type AnyTool = Tool | AgentTool | ClientTool;

/** A list of tools, or an object of tools by their names. In an object a tool may leave out its name, as AI SDK `tool()` objects do. */
export type ToolSet = readonly AnyTool[] | Readonly<Record<string, AnyTool | Unnamed>>;

/** A tool in an object, where the key is its name. */
export type Unnamed = UnnamedTool | (Omit<AgentTool, 'name'> & { readonly name?: never });

export interface AgentOptions extends Omit<Agent, 'planner' | 'tools'> {
  readonly planner: GivenPlanner;
  /** The tools of the agent. Default: none. */
  readonly tools?: ToolSet;
}

const OPTIONS: OptionShape<AgentOptions> = {
  name: 'any',
  planner: 'any',
  tools: 'any?',
  limits: 'object?',
  parallelCalls: 'any?',
  readArgs: 'function?',
  onFail: 'any?',
  undo: 'object?',
};

/** Agents that were checked when they were made, and are not checked again. */
const CHECKED = new WeakSet<object>();

/**
 * Makes an agent: `createRuntime({ agents: [agent({ name: 'writer', planner, tools })] })`.
 * @throws PilotageError `invalid_config` naming the option that is wrong, `no_planner`.
 */
export function agent(options: AgentOptions): Agent {
  assertOptions('agent', options, OPTIONS);
  // What was checked is what counts, also when a getter or a class gives the options, or somebody changes them later.
  const { name, planner, tools = [], limits: given, parallelCalls, readArgs, onFail, undo } = options;
  if (typeof name !== 'string' || name.trim() === '') {
    throw new PilotageError('invalid_config', 'The agent has no name. Give it one: every run records it.');
  }
  const owner = `The agent ${JSON.stringify(name)}`;
  if (!name.isWellFormed()) {
    const message = `${owner} has half of a character in its name, which no journal can keep. Give another name.`;
    throw new PilotageError('invalid_config', message);
  }
  assertParallelCalls(parallelCalls, `parallelCalls of the agent ${JSON.stringify(name)}`);
  assertUndoOptions(`the agent ${JSON.stringify(name)}`, { ...defined({ onFail, undo }) });
  const limits = given && checkedLimits(JSON.stringify(name), given);
  if (typeof tools !== 'object' || tools === null) {
    throw new PilotageError(
      'invalid_config',
      `${owner} has the tools ${shownAmount(tools)}; give a list of tools, or an object of them by name.`,
    );
  }
  const checked = { name, planner: asPlanner(planner), tools };
  return checkedAgent({
    ...checked,
    ...defined({ limits, parallelCalls, readArgs: boundTo(options, readArgs), onFail, undo: undo && { ...undo } }),
  });
}

/** An agent that was made of checked parts, such as a flow. */
export function checkedAgent<A extends Agent>(made: A): A {
  CHECKED.add(made);
  return Object.freeze(made);
}

/** @param where the agent stands, for messages. @throws as `agent`. */
export function asCheckedAgent(given: Agent, where: string): Agent {
  if (typeof given !== 'object' || given === null) {
    throw new PilotageError(
      'invalid_config',
      `${where} is ${given === undefined ? 'missing' : shownAmount(given)}; give an agent: agent({ name, planner, tools }).`,
    );
  }
  return CHECKED.has(given) ? given : agent(given);
}

export type AgentToolOptions<S extends InputSchema = InputSchema> = Omit<
  AgentTool<S>,
  'agent' | 'name' | 'inputSchema'
> & {
  /** The name of the tool. Default: the agent's name. */
  readonly name?: string;
  /** Default: an object with a text `input`. */
  readonly inputSchema?: S;
};

const TOOL_OPTIONS: OptionShape<AgentToolOptions> = {
  name: 'any?',
  description: 'any',
  inputSchema: 'any?',
  prompt: 'function?',
  outputSchema: 'any?',
  effect: 'any?',
  needsApproval: 'any?',
  tags: 'any?',
  loading: 'any?',
  mimeTypes: 'any?',
  scopes: 'any?',
  concurrency: 'any?',
  background: 'flag?',
  examples: 'any?',
  providerOptions: 'any?',
  undo: 'any?',
};

/** The arguments of a tool that is given no schema. */
const INPUT: TextInput = Object.freeze({
  type: 'object',
  properties: { input: { type: 'string', description: 'What is to be done, with all that has to be known for it.' } },
  required: ['input'],
  additionalProperties: false,
} as const);

/**
 * A tool whose calls are carried out by runs of the agent: `agentTool(writer, { description })`. The tool has the name of the agent when
 * it is given none, and takes a text `input`, which the run is asked, when it is given no schema.
 * @throws as `agent`.
 */
export function agentTool<const S extends InputSchema = TextInput>(
  given: Agent,
  options: AgentToolOptions<S>,
): AgentTool<S> {
  const made = asCheckedAgent(given, 'The agent of agentTool');
  const { name = made.name, inputSchema = INPUT, ...rest } = readOptions('agentTool', options, TOOL_OPTIONS);
  return { name, inputSchema, ...rest, agent: made } as AgentTool<S>;
}

/**
 * What the run is asked that carries out a call.
 * @param given the arguments as the schema gives them; `args` are the same as JSON.
 * @throws what the tool's own `prompt` throws, or an Error when it gives no text.
 */
export function askedOf(
  { prompt }: { readonly prompt: AgentTool['prompt'] | undefined },
  given: unknown,
  args: Json,
): string {
  if (prompt !== undefined) {
    const asked: unknown = prompt(given as never);
    if (typeof asked === 'string' && asked !== '') return asked;
    // Nobody waits for a promise, and none that fails may end the process.
    if (asked instanceof Promise) asked.catch(() => {});
    throw new Error('prompt gave no text at once; it is a function that returns a text which is not empty');
  }
  const isInput = isJsonObject(args) && typeof args['input'] === 'string' && Object.keys(args).length === 1;
  if (isInput && args['input'] !== '') return args['input'] as string;
  // No text in the arguments ends the frame.
  return `<arguments>\n${JSON.stringify(args).replaceAll('<', '\\u003c')}\n</arguments>`;
}

/** @param where the number stands, for the message. @throws PilotageError `invalid_config`. */
export function assertParallelCalls(value: number | undefined, where: string): void {
  if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= MAX_AT_ONCE)) return;
  throw new PilotageError(
    'invalid_config',
    `${where} is ${String(value)}; give a whole number from 1 to ${MAX_AT_ONCE}, or leave it out.`,
  );
}

const LIMITS: OptionShape<AgentLimits> = {
  ...({ steps: 'any?', calls: 'any?', tokens: 'any?', costUsd: 'any?', deadlineMs: 'any?' } as const),
};

/**
 * The limits as they are now. Each is read by its name, so that getters of a class count.
 * @throws PilotageError `invalid_config` naming a limit that is not a number from 0 up, or an unknown limit.
 */
function checkedLimits(agent: string, given: AgentLimits): AgentLimits {
  assertKnownKeys(`limits of the agent ${agent}`, given, Object.keys(LIMITS));
  const { steps, calls, tokens, costUsd, deadlineMs } = given;
  const limits: AgentLimits = defined({ steps, calls, tokens, costUsd, deadlineMs });
  for (const [axis, value] of Object.entries(limits)) {
    const why = axis === 'costUsd' ? whyNoUsd(value) : whyNoAmount(value);
    if (why === undefined) continue;
    const message = `The agent ${agent} has the limit ${axis} ${shownAmount(value)}; ${why}.`;
    throw new PilotageError('invalid_config', message);
  }
  return Object.freeze(limits);
}

function whyNoAmount(value: unknown): string | undefined {
  return Number.isFinite(value) && (value as number) >= 0 ? undefined : 'give a number from 0 up, or leave it out';
}
