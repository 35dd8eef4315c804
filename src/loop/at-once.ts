/** What keeps the calls of a step from running all at once, on its way into the move. */
import { type AtOnce, type Branch, type Decision, MAX_AT_ONCE } from '#core';
import type { AuthorisedTools } from '#tools';

/** The limit for all calls of a step that a runtime, or an agent, sets. */
export type CallLimit = Required<Pick<AtOnce, 'calls' | 'by'>>;

/** Nothing when nothing is below what holds for every step. */
export function atOnceFor(
  decision: Decision,
  tools: Pick<AuthorisedTools, 'ready'>,
  limit: CallLimit | undefined,
): { readonly atOnce?: AtOnce } {
  if (decision.kind !== 'call_parallel') return {};
  const few = fewOf(decision.branches, tools);
  if (limit === undefined && few.length === 0) return {};
  return { atOnce: { ...limit, ...(few.length === 0 ? {} : { tools: Object.fromEntries(few) }) } };
}

function fewOf(
  branches: readonly Branch[],
  tools: Pick<AuthorisedTools, 'ready'>,
): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const { tool } of branches) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  return [...counts].flatMap(([tool, count]): (readonly [string, number])[] => {
    const most = tools.ready(tool)?.concurrency ?? Number.POSITIVE_INFINITY;
    return most < count ? [[tool, most]] : [];
  });
}

/** The smaller of the two. */
export function callLimit(runtime: number | undefined, agent: number | undefined): CallLimit | undefined {
  if (agent !== undefined && agent <= (runtime ?? MAX_AT_ONCE)) return { calls: agent, by: 'agent' };
  return runtime === undefined ? undefined : { calls: runtime, by: 'runtime' };
}
