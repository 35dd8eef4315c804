/** The options of a ReAct planner. */

import type { LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider';
import {
  assertOptions as assertKinds,
  type Clock,
  type GivenPlanner,
  type OptionShape,
  PilotageError,
  type PlannerMemory,
  type ReasoningReplay,
  type RunView,
} from '#core';
import type { LanguageModel, ModelEntry, Prices } from '#model';
import type { GivenModels } from '#planners';

export interface ReactOptions {
  /**
   * A model, several models in the order in which they are tried, or a registry that ranks them by its measurements. A
   * model without native tool calls is given as `{ model, toolCalls: 'text' }`.
   */
  readonly model: GivenModels;
  /** Prices of models that do not state their own. Without prices the cost of model calls is not known. */
  readonly prices?: Prices;
  /** Replaces the default instructions; the list of tools, the guidance and the constraints still follow. */
  readonly systemPrompt?: string;
  /** Text that is added to the system prompt. */
  readonly guidance?: string;
  /**
   * Makes the messages of the request in place of the default ones. It must be pure: the same view gives the same messages. An
   * error that it throws fails the run.
   */
  readonly buildPrompt?: (view: RunView, ours: () => LanguageModelV4Prompt) => LanguageModelV4Prompt;
  /** Whether the model may make several calls in one reply. Default true. */
  readonly parallelToolCalls?: boolean;
  /**
   * True: an answer in text pauses the run for the user's next message (`resume` with `{ message }`). In a task, such as the run of an
   * agent that is a tool, the text is a question to the user, and a call of `_finish` ends the task. Default: the answer ends the run.
   */
  readonly converse?: boolean;
  /**
   * True: the model may give work to tasks, which run by themselves. An answer in text then waits for the tasks that are under way
   * before it ends the run. Default false.
   */
  readonly tasks?: boolean;
  /**
   * The schema of the answer: a Standard Schema, such as one of zod, or a JSON Schema. An answer that does not fit is given back to the model. With a
   * schema, the payload of the run is a JSON value, as the model has written it: `run.payload(schema)` gives it its type, defaults and
   * transforms. What need not be an object is asked for inside one, `{ "answer": … }`, and taken out of it.
   */
  readonly answerSchema?: object;
  /** How often in a row a model is asked again after a faulty reply, before the next model is asked. Default 2. */
  readonly reasks?: number;
  /**
   * How often an answer that the limit of a reply's length cut off is continued before the run ends as `length`; 0 for never. Default 3.
   */
  readonly continuations?: number;
  /** The planner that takes over for the rest of the run when every model has had its tries. Without it the run ends with `no_path`, or, when the last of them refused, as `refused`. */
  readonly fallback?: GivenPlanner;
  /** How many further tries one model gets after a failure that may pass, such as a 503. Default 2. */
  readonly retries?: number;
  /** Milliseconds of silence after which a stream counts as failed, in a way that may pass. Default 120,000. */
  readonly stallMs?: number;
  /** Whether a model's earlier reasoning is sent back to it as text. Default `never`. */
  readonly reasoningReplay?: ReasoningReplay;
  /** How many examples are shown for each tool. Default 3. */
  readonly maxToolExamples?: number;
  readonly compaction?: CompactionOptions;
  /**
   * What is remembered of users in the runtime's long-term store. The model is told, at the start of each run, the profile of its user and
   * what fits the query best, and has the tool `remember`. Default: nothing.
   */
  readonly memory?: ReactMemory;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  /** Options that are passed on to the provider. */
  readonly providerOptions?: SharedV4ProviderOptions;
  /** The clock for waits between tries. */
  readonly clock?: Clock;
}

export interface CompactionOptions {
  /** The estimated number of tokens of a request from which on earlier steps are summarised. */
  readonly budgetTokens: number;
  /** The model that writes summaries. Default: the first model. */
  readonly summariser?: LanguageModel | ModelEntry;
}

export interface ReactMemory {
  /** The schema of the profile: a Standard Schema, or a JSON Schema, of an object. Default: there are only facts. */
  readonly profile?: object;
  /** How many remembered items a run is told of; 0 for none. Default 8. */
  readonly recall?: number;
  /**
   * What says what of a run that has ended is worth remembering: a function, or a model that is asked for it. `runtime.extractMemory()`
   * asks it. Default: only the tool `remember` writes.
   */
  readonly extract?: NonNullable<PlannerMemory['extract']> | LanguageModel | ModelEntry;
}

export const DEFAULT_RECALL = 8;
export const DEFAULT_REASKS = 2;
export const DEFAULT_CONTINUATIONS = 3;

/** Whether the run may start tasks: the option is set, and the run is not at the greatest depth. */
export function mayStartTasks({ tasks = false }: ReactOptions, view: RunView): boolean {
  return tasks && view.tasks;
}

/** Whether a reply in text asks the user, and a call of `_finish` ends the run: a task that talks has a result that somebody waits for. */
export function endsByCall({ converse = false }: ReactOptions, view: RunView): boolean {
  return converse && view.task !== undefined && view.lastMove === undefined;
}

const OPTIONS: OptionShape<ReactOptions> = {
  model: 'any',
  prices: 'object?',
  systemPrompt: 'text?',
  guidance: 'text?',
  buildPrompt: 'any?',
  parallelToolCalls: 'flag?',
  converse: 'flag?',
  tasks: 'flag?',
  answerSchema: 'schema?',
  reasks: 'whole?',
  continuations: 'whole?',
  fallback: 'planner?',
  retries: 'whole?',
  stallMs: 'count?',
  reasoningReplay: 'any?',
  maxToolExamples: 'whole?',
  compaction: 'object?',
  memory: 'object?',
  maxOutputTokens: 'count?',
  temperature: 'number?',
  providerOptions: 'object?',
  clock: 'clock?',
};
const MEMORY: OptionShape<ReactMemory> = { profile: 'schema?', recall: 'whole?', extract: 'any?' };
const COMPACTION: OptionShape<CompactionOptions> = { budgetTokens: 'count', summariser: 'any?' };

/** @throws PilotageError `invalid_config` naming the option. */
export function assertReactOptions(options: ReactOptions): void {
  assertKinds('react', options, OPTIONS);
  if (options.memory !== undefined) assertKinds('the memory of react', options.memory, MEMORY);
  if (options.compaction !== undefined) assertKinds('the compaction of react', options.compaction, COMPACTION);
  const { reasoningReplay, buildPrompt } = options;
  if (reasoningReplay !== undefined && reasoningReplay !== 'never' && reasoningReplay !== 'text') {
    throw refuse('reasoningReplay', String(reasoningReplay), 'never or text');
  }
  if (buildPrompt !== undefined && typeof buildPrompt !== 'function') {
    throw refuse('buildPrompt', typeof buildPrompt, 'a function');
  }
}

function refuse(name: string, given: string, wanted: string): PilotageError {
  return new PilotageError('invalid_config', `The option ${name} of react is ${given}; give ${wanted}.`);
}
