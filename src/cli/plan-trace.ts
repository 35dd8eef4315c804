/** How a plan was found by decomposition, as the planner has recorded it. */
import type { Step } from '#core';
import { traceOfStep, traceText } from '#planners/htn';
import { harmless } from './text.ts';

/** With a blank line before it. None when the plan was made in another way. */
export function traceLines(step: Pick<Step, 'provenance'>): readonly string[] {
  const trace = traceOfStep(step);
  if (trace === undefined || trace.nodes.length === 0) return [];
  return ['', 'decomposition:', ...harmless(traceText(trace)).split('\n')];
}
