/** A planner that decomposes tasks: what it decides at a step, however its tasks are given. */
import {
  asJson,
  assertIdentity,
  type Decision,
  defined,
  FINISH_TOOL,
  type Json,
  type JsonObject,
  MESSAGE_TOOL,
  type Move,
  type OnFailedPlan,
  type PilotageError,
  type Planner,
  type RunView,
  type Step,
  withUsage,
} from '#core';
import {
  boundToEarlier,
  checkPlan,
  finishOfPlan,
  freshPlanId,
  notesOf,
  planDecision,
  planFailed,
  planIdOf,
  planInvalid,
  planNodes,
  type ReadyPlan,
  type ReadyStep,
  wholeArgs,
} from '#plans';
import type { HtnTask } from './domain.ts';
import type { Item, Resolve } from './item.ts';
import { type Helpers, Questions } from './questions.ts';
import { type Means, planAnew, planRest, type Solved } from './revise.ts';
import type { HtnLimits } from './search.ts';
import { type HtnState, type HtnTables, htnState } from './state.ts';
import { deadEndsOf, type HtnTrace, RECORD } from './trace.ts';
import {
  type DoneStep,
  type HtnStep,
  type HtnWork,
  type Notes,
  newWork,
  type Observe,
  type Past,
  recordOf,
  replay,
} from './work.ts';

/** What such a planner goes by in one run. */
interface Knowledge extends Helpers {
  readonly resolve: Resolve;
  readonly fingerprint?: Means['fingerprint'];
  tables(): HtnTables | Promise<HtnTables>;
  todo(): readonly HtnTask[] | Promise<readonly HtnTask[]>;
  /** `undefined`: the action only changes the state. */
  stepOf(task: HtnTask): HtnStep | undefined;
  readonly observe?: Observe | undefined;
}

export interface PlannerParts {
  readonly name: string;
  readonly version?: string | undefined;
  readonly onFailedPlan?: OnFailedPlan | undefined;
  readonly limits: Required<HtnLimits>;
  /** Plans one step at a time; later tasks stay as they are. */
  readonly lazy: boolean;
  /** The tool for steps of the type `internal`. */
  readonly internal?: string | undefined;
  /** Models without prices that are asked. */
  readonly unpriced: readonly string[];
  knows(run: RunView, signal: AbortSignal): Knowledge;
}

/** Steps of one decision; what is more is for the next one. */
const MAX_STEPS = 1_000;

export function plannerOf(parts: PlannerParts): Planner {
  const { name, version, unpriced, onFailedPlan } = parts;
  const next = (run: RunView, signal: AbortSignal): Promise<Move> => new Turn(parts, run, signal).move();
  return Object.freeze({
    name,
    wakeMode: 'push' as const,
    whileAsked: 'keep' as const,
    ...defined({ version, onFailedPlan }),
    unpriced,
    next,
  });
}

/** The making of one move. */
class Turn {
  readonly #parts: PlannerParts;
  readonly #run: RunView;
  readonly #signal: AbortSignal;
  readonly #knowledge: Knowledge;
  readonly #questions: Questions;
  /** Asked for in this turn, each once. */
  readonly #steps = new Map<Item, HtnStep | undefined>();
  #ids = 0;

  constructor(parts: PlannerParts, run: RunView, signal: AbortSignal) {
    this.#parts = parts;
    this.#run = run;
    this.#signal = signal;
    this.#knowledge = parts.knows(run, signal);
    this.#questions = new Questions(this.#knowledge, run, signal);
  }

  /** @throws what keeps it from a move, with what its questions have used by then. */
  async move(): Promise<Move> {
    try {
      return { ...(await this.#made()), ...this.#questions.notes };
    } catch (error) {
      throw withUsage(error, this.#questions.notes.usage);
    }
  }

  async #made(): Promise<Move> {
    this.#signal.throwIfAborted();
    assertIdentity(this.#run.identity);
    const { resolve, observe } = this.#knowledge;
    const state = htnState(await this.#knowledge.tables());
    const past = replay(this.#run, state, resolve, observe);
    if (past.step !== undefined && hasFinished(past.step)) return { decision: finishOfPlan(past.step) };
    const isGoingOn = past.work?.goal === this.#run.goal;
    const work = isGoingOn && past.work !== undefined ? leftOf(past.work, past) : await this.#newWork(past.work);
    this.#ids = work.ids;
    const means = this.#means(work, state);
    const solved = isGoingOn
      ? await planRest(work, means, this.#signal, past.failed?.item)
      : await planAnew(work, means, this.#signal);
    return this.#carryOut(work, solved, means, past);
  }

  async #newWork(old: HtnWork | undefined): Promise<HtnWork> {
    return newWork(this.#run.goal, await this.#knowledge.todo(), this.#knowledge.resolve, old);
  }

  #means({ notes }: HtnWork, state: HtnState): Means {
    const { limits, lazy } = this.#parts;
    const { resolve, fingerprint, choose, fill } = this.#knowledge;
    const chosen = async ({ task }: Item, methods: readonly string[]): Promise<string> => {
      const asked = JSON.stringify([task, methods]);
      const known = notes.choices.get(asked);
      if (known !== undefined || this.#questions.isSpent) return known ?? '';
      const answer = await this.#questions.choose(task, methods);
      notes.choices.set(asked, answer);
      return answer;
    };
    return {
      ...limits,
      state,
      resolve,
      leaves: fill !== undefined,
      ...defined({ fingerprint }),
      ...(lazy ? { isEnough: (item: Item) => item.kind === 'leaf' || this.#stepOf(item) !== undefined } : {}),
      ...(choose === undefined ? {} : { choose: chosen }),
    };
  }

  #stepOf(item: Item): HtnStep | undefined {
    if (!this.#steps.has(item)) this.#steps.set(item, this.#knowledge.stepOf(item.task));
    return this.#steps.get(item);
  }

  async #carryOut(work: HtnWork, first: Solved, means: Means, past: Past): Promise<Move> {
    const { trace } = first;
    const passed: Item[] = [];
    let solved = first;
    for (;;) {
      const { plan } = solved;
      if (plan === undefined) {
        const failed = failureOf(solved.trace, past);
        if (failed !== undefined) throw failed;
        return noPath(solved.trace, past);
      }
      const steps = await this.#take(plan, work);
      const items = [...passed, ...plan, ...solved.rest];
      if (steps.length > 0) {
        const record = recordOf({ ...work, items, ids: this.#ids });
        const provenance = { [RECORD]: { ...record, trace: asJson(trace) } };
        return { decision: this.#decision(steps, past), provenance };
      }
      if (solved.rest.length === 0) return { decision: { kind: 'finish', reason: 'goal', payload: resultsOf(past) } };
      // A leaf with nothing to do: on to what is behind it.
      passed.push(...plan);
      solved = await planRest({ ...work, items: solved.rest }, means, this.#signal);
    }
  }

  /** The steps of a plan, as many as one decision has. Notes for each item which steps it has there. */
  async #take(plan: readonly Item[], { notes }: HtnWork): Promise<readonly ReadyStep[]> {
    const steps: ReadyStep[] = [];
    for (const item of plan) {
      if (steps.length >= MAX_STEPS || (steps.length > 0 && this.#waits(item, notes))) break;
      const own = await this.#stepsOf(item, notes.fills);
      const isAnew = isOfAnew(item, notes);
      const ids = own.map((step) => {
        const { id = this.#newId(), type, toolId, input, meta, again } = step;
        const before = steps.at(-1);
        steps.push({
          id,
          type,
          ...defined({ toolId, input, meta }),
          // What was planned from the beginning is to be done, however often it stands there.
          ...(again === true || !isAnew ? { again: true } : {}),
          after: before === undefined ? [] : [before.id],
        });
        return id;
      });
      notes.steps.set(item, ids);
    }
    return steps;
  }

  /** A leaf that nothing is left to ask about: the run may be given more before the next move. */
  #waits(item: Item, { fills }: Notes): boolean {
    return item.kind === 'leaf' && !fills.has(item) && this.#questions.isSpent;
  }

  async #stepsOf(item: Item, fills: Map<Item, readonly HtnStep[]>): Promise<readonly HtnStep[]> {
    if (item.kind === 'check') return [];
    if (item.kind !== 'leaf') {
      const step = this.#stepOf(item);
      return step === undefined ? [] : [step];
    }
    const known = fills.get(item);
    if (known !== undefined) return known;
    this.#signal.throwIfAborted();
    const steps = await this.#questions.fill(item.task);
    fills.set(item, steps);
    return steps;
  }

  #newId(): string {
    this.#ids += 1;
    return `a${this.#ids}`;
  }

  #decision(steps: readonly ReadyStep[], { done }: Past): Decision {
    const { name, internal, lazy } = this.#parts;
    const checked = checkPlan(
      { planId: freshPlanId(this.#run, name), steps },
      {
        tools: this.#run.tools,
        maxSteps: steps.length,
        earlier: new Set(done.keys()),
        ...defined({ internal }),
      },
    );
    if ('faults' in checked) throw planInvalid(checked.faults);
    const plan = boundToEarlier(checked.plan, done, this.#run);
    return (
      (lazy ? callOf(plan, this.#run) : undefined) ?? planDecision(plan, { isAnew: true, ...defined({ internal }) })
    );
  }
}

/** A single step with a tool is a call. */
function callOf({ steps }: ReadyPlan, run: RunView): Decision | undefined {
  const [step] = steps;
  if (steps.length !== 1 || step?.type !== 'tool' || step.toolId === undefined) return undefined;
  const call = { kind: 'call_tool' as const, tool: step.toolId, args: wholeArgs(step.input ?? {}, run) };
  return step.again === true ? call : { ...call, reuse: true };
}

/** Whether the item belongs to a task that was planned anew: what was done for it before is not done again. */
function isOfAnew(item: Item, { again }: Notes): boolean {
  for (let above = item.parent; above !== undefined; above = above.parent) if (again.has(above)) return true;
  return false;
}

function leftOf(work: HtnWork, { left }: Past): HtnWork {
  return { ...work, items: left, notes: { ...work.notes, steps: new Map() } };
}

function hasFinished(step: Step): boolean {
  return planNodes(step).some(({ branch, status }) => branch.tool === FINISH_TOOL && status === 'done');
}

function resultsOf({ done }: Past): Json {
  const told = [...done.values()].filter(({ tool }: DoneStep) => tool !== MESSAGE_TOOL);
  return { results: Object.fromEntries(told.map(({ id, value }) => [id, value])) };
}

/** Nothing is left to try after a node of a plan has failed. */
function failureOf(trace: HtnTrace, { failed, step }: Past): PilotageError | undefined {
  if (failed === undefined || step === undefined || planIdOf(step) === undefined) return undefined;
  return planFailed(planNodes(step), { ...notesOf(step), reasons: deadEndsOf(trace) });
}

function noPath(trace: HtnTrace, { failed }: Past): Move {
  const error = failed?.node.error;
  const metadata: JsonObject = {
    reasons: deadEndsOf(trace),
    ...(failed === undefined ? {} : { failed: [failed.id] }),
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
  };
  const provenance = { [RECORD]: { trace: asJson(trace) } };
  return { decision: { kind: 'finish', reason: 'no_path', metadata }, provenance };
}
