/** How models and templates do at planning: a fold over what is recorded of a run's tries, and nothing beside it. */
import type { PlanTry, Remark, RunEvent, Step } from '#core';

/** What a model and a version of a template came to together. Each try is counted under its result. */
export interface PlanMetricsRow {
  readonly model: string;
  readonly template: { readonly id: string; readonly version: number };
  readonly tries: number;
  readonly valid: number;
  readonly unreadable: number;
  readonly invalid: number;
  readonly forbidden: number;
  readonly failed: number;
  /** Tries that were to mend the one before. */
  readonly repairs: number;
  /** How often the fallback took over when this had been tried last. */
  readonly fallbacks: number;
  /** Totals over all tries. */
  readonly latencyMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** As far as it is known. */
  readonly costMicroUsd: number;
}

export interface PlanMetrics {
  /** In the order of their first try. */
  readonly rows: readonly PlanMetricsRow[];
  /** Also those before any try, such as at a cost ceiling. */
  readonly fallbacks: number;
}

type Counts = { -readonly [K in keyof PlanMetricsRow]: PlanMetricsRow[K] };

/** @param recorded the steps of one run or of several, one run after the other, or their events. Other events are passed over. */
export function planMetrics(recorded: Iterable<Pick<Step, 'remarks'> | RunEvent>): PlanMetrics {
  const rows = new Map<string, Counts>();
  let fallbacks = 0;
  let last: Counts | undefined;
  for (const remark of remarksIn(recorded)) {
    if (remark.type === 'plan.try') {
      last = rowOf(rows, remark);
      addTry(last, remark);
    } else if (remark.type === 'plan.fallback') {
      fallbacks += 1;
      if (last !== undefined) last.fallbacks += 1;
    }
  }
  return { rows: [...rows.values()], fallbacks };
}

type PlanRemark = Remark<'plan.try' | 'plan.fallback'>;

function* remarksIn(recorded: Iterable<Pick<Step, 'remarks'> | RunEvent>): Generator<PlanRemark> {
  for (const each of recorded) {
    for (const remark of 'type' in each ? [each] : (each.remarks ?? [])) {
      if (remark.type === 'plan.try' || remark.type === 'plan.fallback') yield remark;
    }
  }
}

function rowOf(rows: Map<string, Counts>, { model, template }: PlanTry): Counts {
  const key = JSON.stringify([model, template.id, template.version]);
  const known = rows.get(key);
  if (known !== undefined) return known;
  const row: Counts = {
    model,
    template,
    tries: 0,
    valid: 0,
    unreadable: 0,
    invalid: 0,
    forbidden: 0,
    failed: 0,
    repairs: 0,
    fallbacks: 0,
    latencyMs: 0,
    inputTokens: 0,
    outputTokens: 0,
    costMicroUsd: 0,
  };
  rows.set(key, row);
  return row;
}

function addTry(row: Counts, { result, purpose, latencyMs, usage = {} }: PlanTry): void {
  row.tries += 1;
  row[result] += 1;
  if (purpose === 'repair') row.repairs += 1;
  row.latencyMs += latencyMs;
  row.inputTokens += usage.inputTokens ?? 0;
  row.outputTokens += usage.outputTokens ?? 0;
  row.costMicroUsd += usage.costMicroUsd ?? 0;
}
