/** How much room the models of a run have: what they state, and what the run has learnt. */
import {
  type ContextLimit,
  type Move,
  type Overflow,
  PerRun,
  PilotageError,
  type Remark,
  type RunView,
  type Usage,
} from '#core';
import {
  type Counted,
  type ModelAnswer,
  overflowIn,
  type ReadyModel,
  roomFor,
  silentOverflow,
  usageOfError,
} from '#model';
import { FULL_WINDOW, type Requests, windowShare } from './requests.ts';

export function limitOf({ trajectory }: RunView, { name }: ReadyModel): ContextLimit | undefined {
  return trajectory.contextLimits?.find(({ model }) => model === name);
}

/** Whether the model can be sent the next request. */
export function mayBeSent(view: RunView, model: ReadyModel, requests: Requests): boolean {
  const most = limitOf(view, model)?.tokens;
  if (most !== undefined && requests.ownTokensOf(view, model) >= most) return false;
  return windowShare(view, model, requests) < FULL_WINDOW;
}

/** The longest reply that may be asked for, where that is less than is wished. */
export function replyTokens(
  view: RunView,
  model: ReadyModel,
  requests: Requests,
  wish: number | undefined,
): number | undefined {
  const limit = limitOf(view, model);
  if (limit === undefined) return wish;
  const { replyTokens: most, windowTokens, wishTokens, scale = 1 } = limit;
  const shared =
    windowTokens === undefined || wishTokens === undefined
      ? undefined
      : Math.min(wishTokens, roomFor(windowTokens, requests.ownTokensOf(view, model) * scale) ?? wishTokens);
  const bounds = [wish, most, shared].filter((bound) => bound !== undefined);
  return bounds.length === 0 ? undefined : Math.min(...bounds);
}

/** The last replies of each run, by its model: what was counted of their requests. */
export class Counts {
  readonly #last = new PerRun<{ readonly model: ReadyModel; readonly turn: unknown; readonly counted: Counted }>();

  /** What a reply says of its request's size. Its own words count first, and then what its server has counted. */
  overflowOf({ reply, model }: ModelAnswer, view: RunView, requests: Requests): Overflow | undefined {
    const said = overflowIn(reply);
    if (said !== undefined) return said;
    const { inputTokens: server = 0, cachedInputTokens = 0 } = reply.usage ?? {};
    // Who tells of a cache keeps the whole, and who counts so little was sent little.
    if (server < LEAST || cachedInputTokens > 0) return undefined;
    const counted = { own: requests.ownTokensOf(view, model), server };
    const turn = turnOf(view);
    const last = this.#last.get(view);
    const overflow = silentOverflow(counted, last?.model === model && last.turn === turn ? last.counted : undefined);
    if (overflow === undefined) this.#last.set(view, { model, turn, counted });
    else this.#last.set(view, undefined);
    return overflow;
  }
}

const LEAST = 1_000;

/** Changes with each message of a user, after which servers leave out earlier thoughts, and with each summary. */
function turnOf({ trajectory }: RunView): string {
  const { steering, compaction, count } = trajectory;
  let answers = 0;
  const last = trajectory.step(count - 1);
  if (last?.calls[0]?.outcome.kind === 'verdict') answers = count;
  return `${steering.length}/${compaction?.before ?? 0}/${answers}`;
}

/** The request of this step is to be shorter, or to ask for less: what its model takes is learnt, and the step is asked for again. */
export function overflowMove(
  view: RunView,
  model: ReadyModel,
  requests: Requests,
  {
    overflow,
    message,
    usage,
    remarks,
  }: { overflow: Overflow; message: string; usage?: Usage; remarks: readonly Remark[] },
): Move {
  const tokens = requests.ownTokensOf(view, model);
  const data = { model: model.name, tokens, overflow: { ...overflow } };
  const move = { decision: NO_PATH, fault: { code: 'context_window_exceeded', message, data }, remarks };
  return usage === undefined ? move : { ...move, usage };
}

/** The same for an error of a model; `undefined` when nothing is learnt from it: the model refuses what it has said to take. */
export function overflowFrom(
  error: unknown,
  view: RunView,
  asked: { readonly model: ReadyModel; readonly maxOutputTokens: number | undefined },
  requests: Requests,
  remarks: readonly Remark[],
): Move | undefined {
  if (!PilotageError.is(error, 'context_window_exceeded')) return undefined;
  const said = error.data?.['overflow'] as unknown as Overflow | undefined;
  if (said === undefined) return undefined;
  const limit = limitOf(view, asked.model);
  const { kind, mostTokens = 0, limitTokens } = said;
  const isNews = mostTokens < (asked.maxOutputTokens ?? Number.POSITIVE_INFINITY);
  if (kind === 'output' && limitTokens === undefined && !isNews) return undefined;
  // What was asked for left room by our count, and by the server's it did not: the request has to be shorter.
  const isStuck = kind === 'output' && limitTokens !== undefined && (!isNews || limit?.windowTokens === limitTokens);
  const overflow: Overflow = isStuck ? { ...said, kind: 'input' } : said;
  const usage = usageOfError(error);
  return overflowMove(view, asked.model, requests, {
    overflow,
    message: error.message,
    remarks,
    ...(usage === undefined ? {} : { usage }),
  });
}

/** No model is sent the next request, though what can be shortened was. */
export function exhaustedMove(view: RunView, models: readonly ReadyModel[], requests: Requests): Move {
  const [model] = models as readonly [ReadyModel, ...ReadyModel[]];
  const tokens = requests.ownTokensOf(view, model);
  const limit = limitOf(view, model);
  const window = limit?.windowTokens ?? model.contextTokens;
  const takes = window === undefined ? '' : `, whose window is ${window} tokens`;
  const message =
    `The next request fits no model: it has about ${tokens} tokens, and is too long for ${model.name}${takes}. ` +
    'The history was shortened as far as it can be. Give the agent a model with a larger window, or this one a larger window at its ' +
    'server (and in contextTokens, where that is set), and resume the run.';
  const data = { model: model.name, tokens, ...(window === undefined ? {} : { windowTokens: window }) };
  return { decision: NO_PATH, fault: { code: 'context_exhausted', message, data } };
}

const NO_PATH = { kind: 'finish', reason: 'no_path', metadata: { via: 'react.room' } } as const;
