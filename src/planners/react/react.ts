/** ReAct: one model call a step, with the provider's own tool calls. It holds no state of a run but a cache of messages. */
import type {
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import { assertIdentity, type Identity } from '../../core/identity.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Delta, Move, Planner, RunView } from '../../core/planner.ts';
import type { ToolSchema } from '../../core/tool-schema.ts';
import { asLanguageModel, type LanguageModel } from '../../model/language-model.ts';
import { oneCallAtATime } from '../../model/parallel-tool-calls.ts';
import { generateReply, type Reply, streamReply } from '../../model/reply.ts';
import { assertPrices, type Prices, priced } from '../../model/usage.ts';
import { systemPrompt } from '../../prompt/system-prompt.ts';
import { Transcript } from '../../prompt/transcript.ts';
import { decide } from './decide.ts';

export interface ReactOptions {
  readonly model: LanguageModel;
  /** Without them the cost of model calls is not known, and does not count in a budget. */
  readonly prices?: Prices;
  /** Takes the place of the default instructions; the list of tools and the guidance still follow. */
  readonly systemPrompt?: string;
  /** Added at the end of the system prompt. */
  readonly guidance?: string;
  /** May the model make several calls in one reply? Default true. */
  readonly parallelToolCalls?: boolean;
  /** An answer in text pauses the run for the user's next message (`resume` with `{ message }`). Default: it ends it. */
  readonly converse?: boolean;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  /** Passed on to the provider. */
  readonly providerOptions?: SharedV4ProviderOptions;
}

/** @throws PilotageError `invalid_config` for something that is no model, and for bad prices. */
export function react(options: ReactOptions): Planner {
  const { prices, converse = false } = options;
  const model = asLanguageModel(options.model);
  if (prices !== undefined) assertPrices(prices);
  const making = { converse, prices, oneByOne: options.parallelToolCalls === false };
  const settings = settingsOf(options, model);
  const transcripts = new WeakMap<Identity, Transcript>();
  const declared = new WeakMap<readonly ToolSchema[], LanguageModelV4FunctionTool[]>();

  function transcriptOf(view: RunView): Transcript {
    const known = transcripts.get(view.identity);
    if (known?.fits(view)) return known;
    const made = new Transcript(systemPrompt({ ...options, converse }, view.tools.list(), view.startedAt), view);
    transcripts.set(view.identity, made);
    return made;
  }

  function requestOf(view: RunView, transcript: Transcript, signal: AbortSignal): LanguageModelV4CallOptions {
    const list = view.tools.list();
    let tools = declared.get(list);
    if (tools === undefined) {
      tools = list.map(functionTool);
      declared.set(list, tools);
    }
    const prompt = transcript.upTo(view);
    return tools.length === 0
      ? { ...settings, prompt, abortSignal: signal }
      : { ...settings, prompt, abortSignal: signal, tools };
  }

  async function generateMove(view: RunView, signal: AbortSignal): Promise<Move> {
    signal.throwIfAborted();
    assertIdentity(view.identity);
    const transcript = transcriptOf(view);
    return moveOf(await generateReply(model, requestOf(view, transcript, signal)), view, transcript, making);
  }

  async function* streamMove(view: RunView, signal: AbortSignal): AsyncGenerator<Delta, Move> {
    signal.throwIfAborted();
    assertIdentity(view.identity);
    const transcript = transcriptOf(view);
    return moveOf(yield* streamReply(model, requestOf(view, transcript, signal)), view, transcript, making);
  }

  return Object.freeze({
    name: 'react',
    wakeMode: 'push',
    modelDriven: true,
    next: (view: RunView, signal: AbortSignal) =>
      view.streaming ? streamMove(view, signal) : generateMove(view, signal),
  });
}

function moveOf(
  reply: Reply,
  { trajectory }: RunView,
  transcript: Transcript,
  {
    converse,
    prices,
    oneByOne,
  }: { readonly converse: boolean; readonly prices: Prices | undefined; readonly oneByOne: boolean },
): Move {
  const callIds = (wanted: readonly string[]) =>
    transcript.uniqueCallIds(wanted, trajectory.count, wanted.length === 1);
  const { decision, droppedCall } = decide(reply, { callIds, converse, oneByOne });
  const { text, reasoning, usage, providerState, finish, modelId } = reply;
  const provenance: JsonObject =
    droppedCall === undefined ? { model: modelId, finish } : { model: modelId, finish, droppedCall };
  const move: { -readonly [K in keyof Move]: Move[K] } = { decision, provenance };
  if (reasoning !== '') move.reasoning = reasoning;
  if (usage !== undefined) move.usage = prices === undefined ? usage : priced(usage, prices);
  // What ends a run is its payload, and is never replayed.
  if (decision.kind === 'finish') return move;
  if (text !== '') move.text = text;
  if (providerState !== undefined) move.providerState = providerState;
  return move;
}

/** The part of a request that is the same in every step. */
function settingsOf(
  options: ReactOptions,
  model: ReturnType<typeof asLanguageModel>,
): Omit<LanguageModelV4CallOptions, 'prompt'> {
  const { maxOutputTokens, temperature, parallelToolCalls = true } = options;
  const single = parallelToolCalls ? undefined : oneCallAtATime(model);
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

function functionTool({ name, description, inputSchema }: ToolSchema): LanguageModelV4FunctionTool {
  return { type: 'function', name, description, inputSchema: inputSchema as JSONSchema7 };
}
