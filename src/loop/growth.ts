/**
 * A plan that is carried out while the planner still makes it. Its first branches are the move, later branches are added to the
 * open step, and the final decision of the planner closes the plan.
 */
import {
  asJson,
  type Branch,
  branchId,
  type CallParallel,
  capture,
  captureDecision,
  captureObject,
  type Decision,
  type Delta,
  dependenciesOf,
  type EntryBody,
  type ErrorData,
  isJsonObject,
  type Json,
  jsonEquals,
  MAX_PLAN_BRANCHES,
  MESSAGE_TOOL,
  type Move,
  type Moved,
  PilotageError,
  type PlanGrown,
  type Usage,
  usageIn,
  validateDecision,
} from '#core';
import type { Settled } from '../calls/attempt.ts';
import { errorData } from '../calls/outcome.ts';
import {
  type Ask,
  atOnceFor,
  lastWords,
  type PlanGrowth,
  readMove,
  type StreamedText,
  say,
  takeNotes,
  usedBy,
} from './ask.ts';
import { uncounted } from './prices.ts';

export type BranchesDelta = Extract<Delta, { type: 'branches' }>;
type Source = AsyncGenerator<Delta, Decision | Move>;

/** A planner that has given the first branches of a plan, and will give more. */
export class Growing {
  readonly first: BranchesDelta;
  readonly source: Source;
  readonly #isGrowing = true;

  /** Not by `instanceof`, which a proxy may answer. */
  static is(value: unknown): value is Growing {
    return typeof value === 'object' && value !== null && #isGrowing in value;
  }

  constructor(first: BranchesDelta, source: Source) {
    this.first = first;
    this.source = source;
  }
}

export class Growth implements PlanGrowth {
  /** The move, as far as it is known. */
  readonly moved: Moved;
  onMore: () => void = () => {};
  settled: Promise<void> = Promise.resolve();
  readonly #ask: Ask;
  readonly #plan: string;
  readonly #step: number;
  readonly #branches: Branch[] = [];
  readonly #ids = new Set<string>();
  #pending: EntryBody[] = [];
  #isEnded = false;

  /** @throws PilotageError `invalid_decision` for branches that are not valid. */
  constructor(ask: Ask, { first }: Growing, step: number, startedAt: number) {
    this.#ask = ask;
    const { plan, concurrency } = first;
    this.#plan = plan;
    this.#step = step;
    const how = concurrency === undefined ? {} : { concurrency };
    const branches = this.#added({ ...first, plan });
    const decision = validateDecision({ kind: 'call_parallel', plan, branches, onInvalid: 'per_branch', ...how });
    this.moved = { kind: 'moved', step, decision, startedAt, growing: true, ...this.#atOnce(decision) };
  }

  /** Runs the planner on, beside the calls of the step. */
  goOn({ source }: Growing, said: StreamedText): void {
    const { attempt, signal, tracing } = this.#ask;
    const listen = () => this.#listen(source, said);
    const ended = attempt.run(
      () => (tracing === undefined ? listen() : tracing.within({ step: this.#step }, listen)),
      (settled) => this.#end(settled),
      { signal },
    );
    this.settled = Promise.resolve(ended);
  }

  get isOver(): boolean {
    return this.#isEnded && this.#pending.length === 0;
  }

  take(): readonly EntryBody[] {
    const taken = this.#pending;
    this.#pending = [];
    return taken;
  }

  async #listen(source: Source, said: StreamedText): Promise<Decision | Move> {
    for (;;) {
      const { value, done } = await source.next();
      if (done === true) return value;
      if (this.#ask.attempt.aborted) {
        await lastWords(source);
        throw this.#ask.signal.signal.reason;
      }
      if (value.type === 'branches') this.#tell({ branches: this.#added(value) });
      else say(value, said, this.#ask);
    }
  }

  #end(settled: Settled<Decision | Move>): void {
    this.#isEnded = true;
    if (this.#ask.attempt.aborted) this.#stopped(usedBy(settled));
    else if (settled.kind === 'value') this.#close(settled.value);
    else if (settled.kind === 'thrown') this.#fail(errorData(settled.error));
    else this.#tell({ branches: [], done: true, fault: CUT_OFF });
  }

  /** Why is in the inbox, or somebody else has the run: the plan is closed by whoever goes on with it. What was used counts where the run ends. */
  #stopped(usage: Usage | undefined): void {
    if (usage === undefined || !this.#ask.isEnding()) this.onMore();
    else this.#tell({ branches: [], done: true, fault: CUT_OFF, usage });
  }

  #close(made: Decision | Move): void {
    const grown: { -readonly [K in keyof PlanGrown]: PlanGrown[K] } = {
      kind: 'plan_grown',
      step: this.#step,
      branches: [],
      done: true,
    };
    try {
      const move = readMove(made);
      takeNotes(grown, move);
      const { deps, state } = this.#ask;
      const unpriced = uncounted(deps.agent, grown.usage, state.limits.costMicroUsd);
      if (unpriced !== undefined) throw unpriced;
      grown.branches = this.#rest(captureDecision(move.decision));
      if (move.fault !== undefined) grown.fault = captureObject<ErrorData>(move.fault, 'move.fault').json;
    } catch (thrown) {
      grown.fault = errorData(thrown);
    }
    this.#pending.push({ ...grown, ...this.#atOnce({ kind: 'call_parallel', branches: this.#branches }) });
    this.onMore();
  }

  #atOnce(decision: Decision): Pick<PlanGrown, 'atOnce'> {
    return atOnceFor(decision, this.#ask.tools, this.#ask.deps.limit);
  }

  /** Usage that the planner reports counts all the same. */
  #fail(fault: ErrorData): void {
    this.#tell({ branches: [], done: true, fault, ...usageIn(fault.data) });
  }

  #tell(more: Pick<PlanGrown, 'branches' | 'done' | 'fault' | 'usage'>): void {
    this.#pending.push({ kind: 'plan_grown', step: this.#step, ...more });
    this.onMore();
  }

  /** The branches of the whole plan that were not given on the way. @throws PilotageError `invalid_decision`. */
  #rest(decision: Decision): readonly Branch[] {
    if (decision?.kind !== 'call_parallel' || !isSameFrame(decision, this.moved.decision)) {
      throw invalid('next() ended with something else than the plan that it had begun');
    }
    const differs = this.#branches.findIndex((branch, index) => {
      const given = decision.branches[index];
      const named = given && { ...given, id: branchId(given, index) };
      return named === undefined || !jsonEquals(asJson(branch), asJson(named));
    });
    if (differs !== -1) throw invalid(`branches[${differs}] differs from the branch that was given on the way`);
    const rest = decision.branches.slice(this.#branches.length);
    return rest.length === 0 ? [] : this.#added({ type: 'branches', plan: this.#plan, branches: rest });
  }

  /** The new branches, checked and frozen. Earlier branches are represented by their ids alone. @throws PilotageError. */
  #added({ plan, branches: given }: BranchesDelta): readonly Branch[] {
    if (plan !== this.#plan) throw invalid(`next() went on with another plan than ${JSON.stringify(this.#plan)}`);
    const branches = capturedBranches(given);
    if (this.#branches.length + branches.length > MAX_PLAN_BRANCHES) {
      throw invalid(`the plan has more than ${MAX_PLAN_BRANCHES} branches`);
    }
    const ids = branches.map((branch, index) => branchId(branch, this.#branches.length + index));
    const twice = ids.find((id) => this.#ids.has(id));
    if (twice !== undefined) throw invalid(`two branches have the id ${JSON.stringify(twice)}`);
    const named = branches.map((branch, index) => ({ ...branch, id: ids[index] as string }));
    const needs = new Set(named.flatMap((branch) => dependenciesOf(branch)).filter((id) => this.#ids.has(id)));
    const known = [...needs].map((id): Branch => ({ id, tool: MESSAGE_TOOL, args: null }));
    const checked = validateDecision({ kind: 'call_parallel', plan, branches: [...known, ...named] }) as CallParallel;
    const added = checked.branches.slice(known.length);
    for (const id of ids) this.#ids.add(id);
    this.#branches.push(...added);
    return added;
  }
}

function capturedBranches(given: unknown): readonly Branch[] {
  const { json } = capture<readonly Branch[]>(given ?? null, 'branches');
  if (!Array.isArray(json) || json.length === 0) throw invalid('the plan has no branches');
  if (json.some((branch) => !isJsonObject(branch))) throw invalid('a branch of the plan is not an object');
  return json;
}

/** Whether two decisions are the same apart from their branches. */
function isSameFrame(made: Decision, begun: Decision): boolean {
  const frame = (decision: Decision): Json => asJson({ ...decision, branches: [] });
  return jsonEquals(frame(made), frame(begun));
}

const CUT_OFF: ErrorData = {
  code: 'plan_interrupted',
  message: 'The planner was cut off before its plan was whole. What it had given is carried out.',
};

/** Closes a plan that no planner goes on with. */
export function cutOff(step: number): PlanGrown {
  return { kind: 'plan_grown', step, branches: [], done: true, fault: CUT_OFF };
}

function invalid(what: string): PilotageError {
  return new PilotageError('invalid_decision', `The planner's plan is invalid: ${what}.`);
}
