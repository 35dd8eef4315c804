/** A planner that decides by the view alone, as its plan says, and checks what it is shown. */
import {
  type CompactionAttempt,
  type Decision,
  type Delta,
  isJsonObject,
  type Json,
  type Move,
  type Planner,
  type RunView,
} from '#core';
import { never } from '#testing';
import { checkNews } from './check-background.ts';
import { checkView } from './check-view.ts';
import type { Ledger } from './ledger.ts';
import { oddValue } from './odd.ts';
import type { SimulatedProcess } from './process.ts';
import type { PlannedMove, SimulationScript } from './script.ts';

export interface PlannerWorld {
  readonly script: SimulationScript;
  readonly process: SimulatedProcess;
  readonly ledger: Ledger;
  readonly shown: ShownGroups;
}

export function simulatedPlanner(name: string, { script, process, ledger, shown }: PlannerWorld): Planner {
  const { compactEvery } = script;
  return {
    name,
    ...versionOf(script, process),
    wakeMode: script.wakeMode,
    ...(compactEvery === undefined ? {} : { compact: async (view) => summaryOf(view, compactEvery) }),
    next: (view) => {
      if (!process.alive) return never();
      ledger.tell(process.name, () => `${view.identity.run}: asked for step ${view.trajectory.count}`);
      checkView(view, script, ledger);
      checkNews(view, ledger);
      if (!isReplayed(view, ledger)) shown.note(view, ledger);
      const { moves = [], obeys, stubborn } = script.plans[planNamed(view)] ?? {};
      const move = moves[view.trajectory.count];
      if (obeys && view.goal !== view.query) return finish('redirected');
      if (view.noProgress !== undefined && stubborn !== true) return { kind: 'finish', reason: 'no_path' };
      const decide = (): Decision => {
        if (move === undefined) return finish(doneWith(view));
        if (move.decision === undefined) {
          throw move.throws === undefined ? new Error('The planner fails.') : oddValue(move.throws);
        }
        return filled(move.decision as unknown as Json, view) as unknown as Decision;
      };
      if (move?.growMs !== undefined) return growing(decide(), move, process);
      const moved = (): Decision | Move => {
        const decision = decide();
        return move?.usage === undefined ? decision : { decision, usage: move.usage };
      };
      return move?.thinkMs === undefined ? moved() : process.wait(move.thinkMs).then(moved);
    },
  };
}

/** Whoever replays a run asks for steps that it has taken. */
function isReplayed({ identity: { run }, trajectory: { count } }: RunView, ledger: Ledger): boolean {
  const entries = ledger.runs.get(run)?.entries ?? [];
  return entries.some((entry) => entry.kind === 'moved' && entry.step === count);
}

/** Every so many steps all of them but the last are summarised; in every third case that does not succeed. */
function summaryOf(
  { identity: { run }, trajectory: { count } }: RunView,
  every: number,
): CompactionAttempt | undefined {
  if (count < 2 || count % every !== 0) return undefined;
  const tokenEstimate = 1_000 + count;
  const usage = { inputTokens: 20, outputTokens: 5, costMicroUsd: 10 };
  if ((count / every) % 3 === 0) {
    return { failure: { code: 'empty_summary', message: 'It said nothing.' }, tokenEstimate, usage };
  }
  const note = `${run} before ${count - 1}`;
  const summary = { goals: [run], facts: [], pending: [], lastOutputDigest: note, note };
  return { compaction: { summary, before: count - 1, tokenEstimate }, usage };
}

function versionOf({ upgrades, world }: SimulationScript, process: SimulatedProcess): { version?: string } {
  if (upgrades) return { version: process.name };
  return world.versions === undefined ? {} : { version: process.isNewer ? 'newer' : 'older' };
}

/** The query, or of a run that carries out a call what its arguments say. */
function planNamed({ query, context: { args } }: RunView): string {
  const plan = args === undefined || !isJsonObject(args) ? undefined : args['plan'];
  if (typeof plan === 'string') return plan;
  // The words of a message that has interrupted others come behind theirs.
  return query.split('\n\n').at(-1) ?? query;
}

/** Gives a plan branch by branch. */
async function* growing(
  decision: Decision,
  { growMs = 0, breaks }: PlannedMove,
  process: SimulatedProcess,
): AsyncGenerator<Delta, Decision> {
  if (decision.kind !== 'call_parallel' || decision.plan === undefined) return decision;
  const { plan, branches, concurrency } = decision;
  const how = concurrency === undefined ? {} : { concurrency };
  for (const [index, branch] of branches.entries()) {
    if (breaks === true && index === branches.length - 1)
      throw new Error('The planner fails in the middle of its plan.');
    yield { type: 'branches', plan, branches: [branch], ...how };
    await process.wait(growMs);
  }
  return decision;
}

function finish(payload: string): Decision {
  return { kind: 'finish', reason: 'goal', payload };
}

/** A replay decides the same only when the record has the end of a task where the planner first saw it. */
function doneWith({ trajectory: { tasks } }: RunView): string {
  const ended = tasks.filter(({ end }) => end !== undefined).length;
  return tasks.length === 0 ? 'done' : `done with ${ended} of ${tasks.length} tasks`;
}

/** The decision with the ids that its texts stand for. */
function filled(value: Json, view: RunView): Json {
  if (typeof value === 'string') return nameOf(value, view);
  if (Array.isArray(value)) return value.map((item) => filled(item, view));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, view)]));
}

function nameOf(text: string, { identity, trajectory }: RunView): string {
  if (!/^[\^#@]/.test(text)) return text;
  if (text.startsWith('^')) return (identity.run.split('.').slice(0, -2).join('.') || identity.run) + text.slice(1);
  const [, mark, digits] = /^([#@])(\d+)$/.exec(text) ?? [];
  if (mark === undefined) return text;
  const task = trajectory.tasks[Number(digits) % Math.max(trajectory.tasks.length, 1)];
  return (mark === '#' ? task?.id : task?.group) ?? 'nobody';
}

/** What planners were shown of groups whose results came by themselves. */
export class ShownGroups {
  /** By run and group: since which step it stands in the trajectory, and the first step that was asked for with it. */
  readonly #seen = new Map<string, Map<string, { readonly atStep: number; readonly step: number }>>();

  note({ identity: { run }, trajectory }: RunView, ledger: Ledger): void {
    const { background, count } = trajectory;
    const before = this.#seen.get(run) ?? new Map();
    this.#seen.set(run, before);
    const now = new Map(background.map(({ group, atStep }) => [group.id, atStep]));
    if (now.size < background.length) ledger.violated('wake', 'a group came twice', run);
    for (const [group, atStep] of now) {
      const known = before.get(group);
      if (atStep > count) ledger.violated('wake', `${group} came at step ${atStep}, at step ${count}`, run);
      if (known === undefined) before.set(group, { atStep, step: count });
      else if (known.atStep !== atStep) ledger.violated('wake', `${group} came at two steps`, run);
    }
    for (const [group, { step }] of before) {
      if (count > step && !now.has(group)) ledger.violated('wake', `${group} came and is gone`, run);
    }
  }

  has(run: string, group: string): boolean {
    return this.#seen.get(run)?.has(group) === true;
  }
}
