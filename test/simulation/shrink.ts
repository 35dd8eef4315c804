/** From a script that fails to a shorter one that fails in the same way. */
import type { Branch, Decision } from '#core';
import type { Plan, SimulationScript } from './script.ts';

/**
 * @param fails plays a script; true when it fails in the way that is looked for.
 * @param plays at most so many scripts are tried.
 */
export async function shrink(
  script: SimulationScript,
  fails: (candidate: SimulationScript) => Promise<boolean>,
  plays = 600,
): Promise<SimulationScript> {
  let left = plays;
  const failsStill = (candidate: SimulationScript): Promise<boolean> => {
    left -= 1;
    return fails(candidate);
  };
  let shortest = script;
  for (let before: SimulationScript | undefined; before !== shortest && left > 0; ) {
    before = shortest;
    for (const smaller of STEPS) shortest = await smallest(shortest, smaller, () => left > 0, failsStill);
  }
  return withoutUnused(shortest);
}

type Smaller = (script: SimulationScript) => Iterable<SimulationScript>;

/** Takes the first smaller script that still fails, again and again. */
async function smallest(
  script: SimulationScript,
  smaller: Smaller,
  mayGoOn: () => boolean,
  fails: (candidate: SimulationScript) => Promise<boolean>,
): Promise<SimulationScript> {
  let shortest = script;
  for (let found = true; found; ) {
    found = false;
    for (const candidate of smaller(shortest)) {
      if (!mayGoOn()) return shortest;
      if (!(await fails(candidate))) continue;
      shortest = candidate;
      found = true;
      break;
    }
  }
  return shortest;
}

const STEPS: readonly Smaller[] = [
  function* (script) {
    for (const roots of without(script.roots)) if (roots.length > 0) yield { ...script, roots };
  },
  function* (script) {
    for (const acts of without(script.acts)) yield { ...script, acts };
  },
  function* (script) {
    for (const faults of without(script.faults)) yield { ...script, faults };
    for (const forks of without(script.forks)) yield { ...script, forks };
    for (const readers of without(script.readers)) yield { ...script, readers };
    for (const signals of without(script.signals)) yield { ...script, signals };
    for (const streamReaders of without(script.streamReaders ?? [])) yield { ...script, streamReaders };
    for (const starts of without(script.starts ?? [])) yield { ...script, starts };
    for (const approvals of without(script.approvals ?? [])) yield { ...script, approvals };
  },
  function* (script) {
    const { calendar, ...others } = script;
    if (calendar === undefined) return;
    yield others;
    for (const acts of without(calendar.acts)) yield { ...script, calendar: { ...calendar, acts } };
    for (const nights of without(calendar.nights)) yield { ...script, calendar: { ...calendar, nights } };
  },
  function* ({ memory, progress, compactEvery, ...script }) {
    const options = { memory, progress, compactEvery };
    for (const name of ['memory', 'progress', 'compactEvery'] as const) {
      const { [name]: left, ...others } = options;
      const kept = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined));
      if (left !== undefined) yield { ...script, ...kept };
    }
  },
  function* (script) {
    const { world } = script;
    if (world.aheadMs.some((ms) => ms !== 0)) yield { ...script, world: { ...world, aheadMs: [] } };
    for (const clashes of without(world.clashes)) yield { ...script, world: { ...world, clashes } };
    if (world.journal !== 'memory') yield { ...script, world: { ...world, journal: 'memory' } };
    if (world.homes.length > 0) yield { ...script, world: { ...world, homes: [] } };
  },
  function* (script) {
    if (script.delays.chance > 0) yield { ...script, delays: { ...script.delays, chance: 0 } };
    if (script.workers > 1) yield { ...script, workers: script.workers - 1 };
    for (const [index, root] of script.roots.entries()) {
      const { twin: _, watcher: __, ...plain } = root;
      const at = (changed: typeof root): SimulationScript => ({ ...script, roots: script.roots.with(index, changed) });
      if (root.twin !== undefined || root.watcher !== undefined) yield at(plain);
      if (Object.keys(root.limits).length > 0) yield at({ ...root, limits: {} });
      if (root.at > 0) yield at({ ...root, at: 0 });
    }
  },
  function* (script) {
    for (const [name, plan] of Object.entries(script.plans)) {
      for (const smaller of smallerPlans(plan)) yield { ...script, plans: { ...script.plans, [name]: smaller } };
    }
  },
];

function* smallerPlans(plan: Plan): Iterable<Plan> {
  for (const moves of without(plan.moves)) yield { ...plan, moves };
  if (plan.obeys) yield { moves: plan.moves };
  for (const [index, { decision, thinkMs, growMs }] of plan.moves.entries()) {
    if (decision === undefined) continue;
    if (thinkMs !== undefined || growMs !== undefined) {
      yield { ...plan, moves: plan.moves.with(index, { decision }) };
    }
    for (const smaller of smallerDecisions(decision)) {
      yield { ...plan, moves: plan.moves.with(index, { decision: smaller }) };
    }
  }
}

function* smallerDecisions(decision: Decision): Iterable<Decision> {
  if (decision.kind !== 'call_parallel') return;
  const { join, onInvalid, concurrency, failFast, plan: _plan, ...plain } = decision;
  if (onInvalid !== undefined || concurrency !== undefined || failFast !== undefined)
    yield join === undefined ? plain : { ...plain, join };
  for (const branches of without(decision.branches)) {
    if (branches.length > 0)
      yield join?.kind === 'n' || join?.kind === 'keyed' ? { ...plain, branches } : { ...decision, branches };
  }
  const isOrdered = ({ after, when, routes }: Branch): boolean => (after ?? when ?? routes) !== undefined;
  if (decision.branches.some(isOrdered)) yield { ...decision, branches: decision.branches.map(unordered) };
}

/** Without the order, and by the first of its routes. */
function unordered({ after: _, when: __, routes, ...branch }: Branch): Branch {
  return routes?.[0] === undefined ? branch : { ...branch, args: routes[0].args };
}

/** All of it left out, then halves, then single items. */
function* without<T>(items: readonly T[]): Iterable<readonly T[]> {
  if (items.length === 0) return;
  yield [];
  const half = items.length >> 1;
  if (half > 0) {
    yield items.slice(half);
    yield items.slice(0, half);
  }
  if (items.length > 2) for (const index of items.keys()) yield items.toSpliced(index, 1);
}

/** Plans that nobody names are of no interest: neither the script, nor another plan that somebody names. */
function withoutUnused({ plans, ...others }: SimulationScript): SimulationScript {
  const used = new Set<string>();
  const named = (part: unknown): string[] => {
    const text = JSON.stringify(part);
    return Object.keys(plans).filter((name) => text.includes(`"${name}"`));
  };
  const open = named(others);
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (used.has(name)) continue;
    used.add(name);
    open.push(...named(plans[name]));
  }
  return { ...others, plans: Object.fromEntries(Object.entries(plans).filter(([name]) => used.has(name))) };
}
