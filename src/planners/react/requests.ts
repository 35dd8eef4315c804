/** The request of a step: messages that only grow, the tools that are known, and what is the same in every request. */
import type {
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ProviderTool,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import {
  type Compaction,
  calledName,
  defined,
  FINISH_TOOL,
  type OutputMode,
  PerRun,
  PilotageError,
  type RunView,
  type ToolSchema,
  type Trajectory,
} from '#core';
import {
  type CacheUse,
  type CountedBefore,
  cachedRequest,
  cacheUseOf,
  estimateTokens,
  mostFileBytes,
  oneCallAtATime,
  type ReadyModel,
  structuredFormat,
  TokenCounter,
  takesInResults,
  takesMedia,
  takesUrl,
} from '#model';
import {
  awaitsCode,
  CONTROL_TOOLS,
  controlTools,
  type DeclaredTool,
  finishTool,
  systemPrompt,
  Transcript,
  toolDescription,
} from '#prompt';
import type { AnswerForm } from './answer-form.ts';
import { endsByCall, mayStartTasks, type ReactOptions } from './options.ts';

/** The reserved names that a model may call, by what the run may do. */
type Controls = Readonly<Record<'none' | 'tasks' | 'finish' | 'both', readonly DeclaredTool[]>>;

export class Requests {
  readonly #options: ReactOptions;
  readonly #form: AnswerForm | undefined;
  readonly #settings = new Map<ReadyModel, ModelSettings>();
  /** Messages of runs that go on, by the run and then the model: they are told differently to different models. */
  readonly #transcripts = new PerRun<Map<ReadyModel, Transcript>>();
  readonly #meters = new PerRun<TokenMeter>();
  readonly #systems = new SystemPrompts();
  /** With the controls of a run, which are the same list for all runs that have the same. */
  readonly #declared = new WeakMap<readonly DeclaredTool[], DeclaredTools>();
  readonly #controls: Controls;
  /** Where tasks may be given to one of several agents, by the list of these. */
  readonly #controlsWith = new WeakMap<readonly string[], Controls>();

  constructor(options: ReactOptions, form: AnswerForm | undefined) {
    this.#options = options;
    this.#form = form;
    this.#controls = this.#makeControls(CONTROL_TOOLS);
  }

  #makeControls(tasks: readonly DeclaredTool[]): Controls {
    const finish = finishTool(this.#form?.callSchema);
    const made = { none: [], tasks, finish: [finish], both: [...tasks, finish] };
    for (const controls of Object.values(made)) this.#declared.set(controls, new WeakMap());
    return made;
  }

  /**
   * The request as it is sent, with what makes the provider's cache read it.
   * @param reminder a last turn of this request alone.
   * @throws what a prompt builder throws; PilotageError `memory_block_unserializable`.
   */
  of(
    view: RunView,
    model: ReadyModel,
    reminder: LanguageModelV4Message | undefined,
    format: OutputMode | undefined,
  ): LanguageModelV4CallOptions {
    const last = reminder && view.trajectory.step(view.trajectory.count - 1);
    const due = last !== undefined && awaitsCode(last) ? undefined : reminder;
    const request = this.#plain(view, model, due, format);
    const { cache } = this.#settingsOf(model);
    if (cache === undefined) return request;
    return cachedRequest(request, cache, { identity: view.identity, once: due === undefined ? 0 : 1 });
  }

  #plain(
    view: RunView,
    model: ReadyModel,
    reminder: LanguageModelV4Message | undefined,
    format: OutputMode | undefined,
  ): LanguageModelV4CallOptions {
    const prompt = this.promptOf(view, model);
    if (reminder !== undefined) prompt.push(reminder);
    const request: LanguageModelV4CallOptions = { ...this.#settingsOf(model).settings, prompt };
    if (model.toolCalls === 'native') {
      const tools = this.#toolsOf(view);
      if (tools.length > 0) request.tools = tools;
      // They stay declared: what a cache has of the request holds, and calls of before are known.
      if (tools.length > 0 && view.lastMove !== undefined) request.toolChoice = { type: 'none' };
    }
    if (this.#form === undefined || format === undefined || endsByCall(this.#options, view)) return request;
    const { responseFormat } = structuredFormat(format, this.#form.schema, 'answer');
    return responseFormat === undefined ? request : { ...request, responseFormat };
  }

  /** A request of that run was made before. */
  knows(view: RunView): boolean {
    return this.#transcripts.get(view) !== undefined;
  }

  /** The messages, as a list of the caller's own. */
  promptOf(view: RunView, model: ReadyModel): LanguageModelV4Prompt {
    const { buildPrompt } = this.#options;
    if (buildPrompt === undefined) return this.transcriptOf(view, model).upTo(view);
    const built: unknown = buildPrompt(view, () => this.transcriptOf(view, model).upTo(view));
    if (Array.isArray(built)) return [...built];
    const message = `The option buildPrompt of react gave ${String(built)}; it gives the messages, a list.`;
    throw new PilotageError('invalid_config', message);
  }

  /** Ids that are unique in the run, the provider's own where they are usable. */
  callIds(view: RunView, model: ReadyModel, wanted: readonly string[]): readonly string[] {
    const transcript = this.transcriptOf(view, model);
    // A builder of the user's own need not have asked for our messages, and the ids are known from them.
    if (this.#options.buildPrompt !== undefined) transcript.upTo(view);
    return transcript.uniqueCallIds(wanted, view.trajectory.count, wanted.length === 1);
  }

  /** About how many tokens the next request has. */
  tokensOf(view: RunView, model: ReadyModel): number {
    return this.#meterOf(view).estimate(this.#plain(view, model, undefined, undefined), model, view);
  }

  #meterOf(view: RunView): TokenMeter {
    let meter = this.#meters.get(view);
    if (meter === undefined) {
      meter = new TokenMeter();
      this.#meters.set(view, meter);
    }
    return meter;
  }

  /** How many tokens this request of the view has, rather too many than too few: its provider may tell fewer of what it has in its cache. */
  tokensIn(request: LanguageModelV4CallOptions, model: ReadyModel, view: RunView): number {
    const meter = this.#meterOf(view);
    return Math.max(meter.count(request), meter.estimate(request, model, view));
  }

  /** About how many tokens the next request has by our own count alone, which is the same in every process. */
  ownTokensOf(view: RunView, model: ReadyModel): number {
    return this.#meterOf(view).count(this.#plain(view, model, undefined, undefined));
  }

  /** What the provider counted for the request of this view. Only a run whose tokens are asked for has a meter. */
  noteTokens(view: RunView, model: ReadyModel, inputTokens: number | undefined): void {
    if (inputTokens === undefined || this.#options.buildPrompt !== undefined) return;
    this.#meters.get(view)?.note(model, view.trajectory.compaction, {
      inputTokens,
      messages: this.transcriptOf(view, model).length,
      tools: model.toolCalls === 'native' ? this.#toolsOf(view).length : 0,
    });
  }

  /** About how many tokens our messages have, and would have with this summary in place of steps. */
  tokensWith(view: RunView, model: ReadyModel, compaction: Compaction): { before: number; after: number } {
    const shorter = { ...view, trajectory: withCompaction(view.trajectory, compaction) };
    return {
      before: estimateTokens({ prompt: this.transcriptOf(view, model).upTo(view) }),
      after: estimateTokens({ prompt: this.#begin(shorter, model).upTo(shorter) }),
    };
  }

  transcriptOf(view: RunView, model: ReadyModel): Transcript {
    let ofRun = this.#transcripts.get(view);
    const known = ofRun?.get(model);
    if (known?.fits(view)) return known;
    if (ofRun === undefined) {
      ofRun = new Map();
      this.#transcripts.set(view, ofRun);
    }
    const made = this.#begin(view, model);
    ofRun.set(model, made);
    return made;
  }

  #begin(view: RunView, model: ReadyModel): Transcript {
    const { converse = false, maxToolExamples, reasoningReplay = 'never', ...options } = this.#options;
    const examples = maxToolExamples === undefined ? {} : { maxExamples: maxToolExamples };
    const given = {
      ...(options.systemPrompt === undefined ? {} : { systemPrompt: options.systemPrompt }),
      ...(options.guidance === undefined ? {} : { guidance: options.guidance }),
      ...(this.#form === undefined ? {} : { answerSchema: this.#form.schema }),
    };
    const tasks = mayStartTasks(this.#options, view);
    const controls = this.#controlsOf(view);
    const finish = controls.find(({ name }) => name === FINISH_TOOL);
    const system = this.#systems.of(view, model.toolCalls, controls, () =>
      systemPrompt({ ...given, ...examples, converse, tasks, ...defined({ finish }) }, view, model.toolCalls),
    );
    return new Transcript(system, view, {
      mode: model.toolCalls,
      provider: model.model.provider,
      sendReasoning: model.sendReasoning,
      replay: view.context.reasoningReplay ?? reasoningReplay,
      tasks,
      takes: (mime) => takesMedia(model, mime),
      takesInResults: (mime) => takesInResults(model.model, mime),
      mostFileBytes: (mime) => mostFileBytes(model.model, mime),
      takesUrl: (mime, url) => takesUrl(model.model, mime, url),
      ...defined({ historyChars: historyChars(options.compaction?.budgetTokens, model) }),
      ...examples,
    });
  }

  #toolsOf(view: RunView): OfferedTool[] {
    const list = view.tools.list();
    const controls = this.#controlsOf(view);
    const known = this.#declared.get(controls);
    let declared = known?.get(list);
    if (declared === undefined) {
      // Tools that are found come last, so that the request only grows.
      const { hosted = [] } = view.tools;
      declared = [...hosted, ...controls, ...list].map((tool) => declaredTool(tool, this.#options.maxToolExamples));
      known?.set(list, declared);
    }
    return declared;
  }

  /** The reserved names that the model may call. */
  #controlsOf(view: RunView): readonly DeclaredTool[] {
    const { none, tasks, finish, both } = this.#controlsFor(view.tools.agents);
    if (endsByCall(this.#options, view)) return mayStartTasks(this.#options, view) ? both : finish;
    return mayStartTasks(this.#options, view) ? tasks : none;
  }

  #controlsFor(agents: readonly string[] | undefined): Controls {
    if (agents === undefined) return this.#controls;
    const known = this.#controlsWith.get(agents) ?? this.#makeControls(controlTools(agents));
    this.#controlsWith.set(agents, known);
    return known;
  }

  /** The part of a request that is the same in every step. */
  #settingsOf(model: ReadyModel): ModelSettings {
    let known = this.#settings.get(model);
    if (known === undefined) {
      known = { settings: settingsOf(this.#options, model), cache: cacheUseOf(model) };
      this.#settings.set(model, known);
    }
    return known;
  }
}

/** Earlier turns may take this share of what a request may have: the run itself needs the rest. */
const HISTORY_SHARE = 0.5;
/** Few enough for texts in most languages. */
const CHARS_PER_TOKEN = 3;

function historyChars(budgetTokens: number | undefined, { contextTokens }: ReadyModel): number | undefined {
  const most = Math.min(budgetTokens ?? Number.POSITIVE_INFINITY, contextTokens ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(most) ? Math.floor(most * HISTORY_SHARE * CHARS_PER_TOKEN) : undefined;
}

/** From this share of a window on a request is not sent: the estimate is rough, and the reply needs room. */
export const FULL_WINDOW = 0.95;

/** How much of the model's window the next request takes; 0 when nobody knows how large that is. */
export function windowShare(view: RunView, model: ReadyModel, requests: Requests): number {
  return model.contextTokens === undefined ? 0 : requests.tokensOf(view, model) / model.contextTokens;
}

/** The same steps, of which the first are summarised. */
export function withCompaction(trajectory: Trajectory, compaction: Compaction): Trajectory {
  const { count, steering, tasks, background } = trajectory;
  return {
    ...{ count, steering, tasks, background, compaction },
    step: (index) => trajectory.step(index),
    get steps() {
      return trajectory.steps;
    },
    get groups() {
      return trajectory.groups;
    },
  };
}

/** By the list of tools that they were made from, so that the same list is always the same objects. */
type DeclaredTools = WeakMap<readonly ToolSchema[], OfferedTool[]>;

type OfferedTool = LanguageModelV4FunctionTool | LanguageModelV4ProviderTool;

type Settings = Omit<LanguageModelV4CallOptions, 'prompt'>;

interface ModelSettings {
  readonly settings: Settings;
  readonly cache: CacheUse | undefined;
}

function settingsOf(options: ReactOptions, { model, toolCalls }: ReadyModel): Settings {
  const { maxOutputTokens, temperature, parallelToolCalls = true } = options;
  const single = parallelToolCalls || toolCalls === 'text' ? undefined : oneCallAtATime(model, options.providerOptions);
  const providerOptions = mergeOptions(single, options.providerOptions);
  return {
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
  };
}

/** Provider by provider; what the user says wins. */
function mergeOptions(
  ours: SharedV4ProviderOptions | undefined,
  theirs: SharedV4ProviderOptions | undefined,
): SharedV4ProviderOptions | undefined {
  if (ours === undefined || theirs === undefined) return theirs ?? ours;
  const merged: SharedV4ProviderOptions = { ...ours };
  for (const [provider, given] of Object.entries(theirs)) merged[provider] = { ...merged[provider], ...given };
  return merged;
}

/** A provider's own tool is told by its type and its settings, every other as a function. */
function declaredTool(tool: DeclaredTool, maxExamples: number | undefined): OfferedTool {
  const { inputSchema, provider, providerOptions } = tool;
  const name = calledName(tool);
  if (provider !== undefined) return { type: 'provider', id: provider.id, name, args: { ...provider.args } };
  const description = toolDescription(tool, maxExamples);
  const declared = { type: 'function' as const, name, description, inputSchema: inputSchema as JSONSchema7 };
  return providerOptions === undefined
    ? declared
    : { ...declared, providerOptions: providerOptions as SharedV4ProviderOptions };
}

const DAY_MS = 86_400_000;

/** The system prompts of runs that begin: those of one day with the same tools have the same. */
class SystemPrompts {
  readonly #last = new WeakMap<readonly ToolSchema[], { readonly key: string; readonly text: string }>();

  /** @param make the prompt of that run; with hints it is the run's own. */
  of(view: RunView, mode: ReadyModel['toolCalls'], controls: readonly DeclaredTool[], make: () => string): string {
    if (view.context.hints !== undefined) return make();
    const tools = view.tools.all();
    const agents = view.tools.agents === undefined ? '' : JSON.stringify(view.tools.agents);
    const key = `${mode}/${controls.map(({ name }) => name)}/${agents}/${Math.floor(view.startedAt / DAY_MS)}`;
    const known = this.#last.get(tools);
    if (known?.key === key) return known.text;
    const text = make();
    this.#last.set(tools, { key, text });
    return text;
  }
}

// How many tokens the requests of one run have: the provider's own count of the last one, and an estimate of the rest.

class TokenMeter {
  readonly #counter = new TokenCounter();
  /** What the provider counted, as long as the messages go on from there. */
  #counted: { readonly model: ReadyModel; readonly compaction: Compaction | undefined } & CountedBefore = NOTHING;

  estimate(request: LanguageModelV4CallOptions, model: ReadyModel, { trajectory }: RunView): number {
    const counted = this.#counted;
    const goesOn = counted.model === model && counted.compaction === trajectory.compaction;
    return this.#counter.estimate(request, goesOn ? counted : undefined);
  }

  count(request: LanguageModelV4CallOptions): number {
    return this.#counter.estimate(request);
  }

  /** After a reply. @param messages of the request that the provider has counted; later requests begin with them. */
  note(model: ReadyModel, compaction: Compaction | undefined, counted: CountedBefore): void {
    this.#counted = { model, compaction, ...counted };
  }
}

const NOTHING = { model: {} as ReadyModel, compaction: undefined, inputTokens: 0, messages: 0 };
