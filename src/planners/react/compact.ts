/** Shortens a run's history when its next request has become too long: the older steps become a summary. */

import { systemClock } from '../../core/clock.ts';
import type { CompactionAttempt, CompactionErrorCode } from '../../core/compaction.ts';
import { describeThrown } from '../../core/errors.ts';
import type { Planner, RunView } from '../../core/planner.ts';
import type { Usage } from '../../core/step.ts';
import { type ReadyModel, readyModel } from '../../model/entry.ts';
import { askStructured } from '../../model/structured.ts';
import { estimateTokens } from '../../model/tokens.ts';
import { coerceToSchema } from '../../parse/index.ts';
import { chooseCut, readSummary, SUMMARY_SCHEMA, summaryRequest } from '../../prompt/compaction.ts';
import type { ModelPool } from './models.ts';
import type { CompactionOptions, ReactOptions } from './options.ts';
import type { Requests } from './requests.ts';

export interface CompactorParts {
  readonly options: ReactOptions;
  readonly pool: ModelPool;
  readonly requests: Requests;
}

/** The newest steps may keep this share of the budget; the summary, and what comes next, need the rest. */
const KEPT_SHARE = 0.5;

/** @throws PilotageError `invalid_config` for a summariser that is no model. */
export function compactor(
  { budgetTokens, summariser }: CompactionOptions,
  { options, pool, requests }: CompactorParts,
): NonNullable<Planner['compact']> {
  const given = summariser === undefined ? undefined : readyModel(summariser);
  return async (view, signal) => {
    const model = given ?? (pool.ranked()[0] as ReadyModel);
    let tokenEstimate = 0;
    let before: number | undefined;
    try {
      const asked = pool.ranked()[0] as ReadyModel;
      tokenEstimate = requests.tokensOf(view, asked);
      if (tokenEstimate <= budgetTokens) return undefined;
      before = cutOf(view, stepSizes(view, requests, asked), budgetTokens * KEPT_SHARE);
    } catch (error) {
      return failed('estimator_error', error, tokenEstimate);
    }
    // The newest step alone is left: there is nothing to sum up.
    if (before === undefined) return undefined;
    return summarise({ view, before, model, tokenEstimate, options }, signal);
  };
}

/** Tokens of each step that is sent in full, oldest first. */
function stepSizes(view: RunView, requests: Requests, model: ReadyModel): readonly number[] {
  const transcript = requests.transcriptOf(view, model);
  const messages = transcript.upTo(view);
  const starts = transcript.stepStarts;
  return starts.map((start, index) => estimateTokens({ prompt: messages.slice(start, starts[index + 1]) }));
}

/** The step from which on everything is kept, when that covers more than the summary there is. */
function cutOf({ trajectory }: RunView, steps: readonly number[], budget: number): number | undefined {
  const before = trajectory.count - chooseCut(steps, budget);
  return before > (trajectory.compaction?.before ?? 0) ? before : undefined;
}

interface Summarising {
  readonly view: RunView;
  readonly before: number;
  readonly model: ReadyModel;
  readonly tokenEstimate: number;
  readonly options: ReactOptions;
}

async function summarise(
  { view, before, model, tokenEstimate, options }: Summarising,
  signal: AbortSignal,
): Promise<CompactionAttempt> {
  const { clock = systemClock, retries, stallMs } = options;
  try {
    const asked = await askStructured({
      model,
      request: { prompt: summaryRequest(view, before) },
      schema: SUMMARY_SCHEMA,
      name: 'summary',
      parse: (text) => readSummary(coerceToSchema(text, SUMMARY_SCHEMA).value),
      signal,
      clock,
      ...(retries === undefined ? {} : { retries }),
      ...(stallMs === undefined ? {} : { stallMs }),
    });
    const { usage } = asked;
    if (!asked.ok) return failed('summariser_error', asked.error, tokenEstimate, usage);
    if (asked.value === undefined) {
      return failed('empty_summary', 'The summariser gave no summary.', tokenEstimate, usage);
    }
    const compaction = { summary: asked.value, before, tokenEstimate };
    return usage === undefined ? { compaction } : { compaction, usage };
  } catch (error) {
    signal.throwIfAborted();
    return failed('summariser_error', error, tokenEstimate);
  }
}

function failed(code: CompactionErrorCode, thrown: unknown, tokenEstimate: number, usage?: Usage): CompactionAttempt {
  const failure = { code, message: describeThrown(thrown) };
  return usage === undefined ? { failure, tokenEstimate } : { failure, tokenEstimate, usage };
}
