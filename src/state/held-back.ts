/** Which calls of a step could run at once but are held back, by its decision and by the limits that were recorded with it. */
import {
  type AtOnce,
  type Branch,
  type CallParallel,
  type Decision,
  type HeldBack,
  linkBranches,
  MAX_AT_ONCE,
  orderOf,
} from '#core';

/** How many calls of the step run at once. */
export function atOnceOf({ concurrency = MAX_AT_ONCE }: Pick<CallParallel, 'concurrency'>, atOnce?: AtOnce): number {
  return Math.min(concurrency, atOnce?.calls ?? MAX_AT_ONCE, MAX_AT_ONCE);
}

/** The limit for all calls first, if it holds any back, then those of tools in the order of the branches. */
export function heldBack({
  decision,
  atOnce,
}: {
  readonly decision: Decision;
  readonly atOnce?: AtOnce | undefined;
}): readonly HeldBack[] {
  if (decision.kind !== 'call_parallel' || decision.branches.length <= 1) return NONE;
  const { branches, concurrency } = decision;
  const limit = atOnceOf(decision, atOnce);
  const tools = Object.entries(atOnce?.tools ?? {});
  // With a concurrency of 1 the planner wants an order: no call counts as held back.
  if (concurrency === 1) return NONE;
  if (branches.length <= limit && tools.length === 0) return NONE;
  const widths = widthsOf(branches);
  const held = widths.all > limit ? [{ by: whoLimits(decision, atOnce, limit), limit, calls: widths.all }] : [];
  const ofTools = tools.flatMap(([tool, most]): HeldBack[] => {
    const calls = widths.tools.get(tool) ?? 0;
    return calls > most ? [{ by: 'tool', tool, limit: most, calls }] : [];
  });
  return [...held, ...ofTools];
}

const NONE: readonly HeldBack[] = Object.freeze([]);

function whoLimits(
  { concurrency }: Extract<Decision, { kind: 'call_parallel' }>,
  atOnce: AtOnce | undefined,
  limit: number,
): HeldBack['by'] {
  if (atOnce?.calls === limit) return atOnce.by ?? 'runtime';
  return concurrency === limit && concurrency < MAX_AT_ONCE ? 'decision' : 'cap';
}

/**
 * The most branches that could run at once, in all and for each tool: branches with equally many before them do not wait for each
 * other.
 */
function widthsOf(branches: readonly Branch[]): { readonly all: number; readonly tools: ReadonlyMap<string, number> } {
  const { needs } = linkBranches(branches);
  const levels = new Array<number>(branches.length).fill(0);
  const counts: { all: number; readonly tools: Map<string, number> }[] = [];
  const most = { all: 0, tools: new Map<string, number>() };
  for (const call of orderOf(needs, 0)) {
    const level = (needs[call] ?? []).reduce((deepest, need) => Math.max(deepest, (levels[need] ?? 0) + 1), 0);
    levels[call] = level;
    counts[level] ??= { all: 0, tools: new Map() };
    const count = counts[level];
    const { tool } = branches[call] as Branch;
    const ofTool = (count.tools.get(tool) ?? 0) + 1;
    count.all += 1;
    count.tools.set(tool, ofTool);
    most.all = Math.max(most.all, count.all);
    most.tools.set(tool, Math.max(most.tools.get(tool) ?? 0, ofTool));
  }
  return most;
}
