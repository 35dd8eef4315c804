/**
 * A plan that its maker gives step by step while it is carried out: each step starts when those before it have ended, and the
 * first that cannot be carried out ends the plan. After a crash the maker is asked again; what it then gives a second time, and
 * was run, is not run again.
 */
import {
  type Branch,
  type Delta,
  defined,
  FINISH_TOOL,
  isJsonObject,
  jsonEquals,
  type Move,
  type RunView,
} from '#core';
import {
  boundToEarlier,
  branchOfStep,
  checkPlan,
  endOfNodes,
  fault,
  freshPlanId,
  isAnew,
  isLooseFinish,
  MAX_PLAN_STEPS,
  type MoveRules,
  namedBy,
  Placement,
  type PlanNode,
  type PlanStep,
  type PlanYield,
  placesOf,
  planInvalid,
  policyFaults,
  type ReadyStep,
  type ResultLocation,
  readGivenPlan,
} from '#plans';

/**
 * @param before the nodes of the plan that was interrupted, if the maker is asked for the rest of it.
 * @throws PilotageError `plan_invalid` at the first step that cannot be carried out, and every error of the maker.
 */
export async function* streamedMove(
  source: AsyncIterable<PlanYield>,
  rules: MoveRules,
  run: RunView,
  signal: AbortSignal,
  before: readonly PlanNode[],
): AsyncGenerator<Delta, Move> {
  const plan = freshPlanId(run);
  const how = rules.concurrency === undefined ? {} : { concurrency: rules.concurrency };
  const steps = new StreamedSteps(run, rules, before);
  let reasoning = '';
  for await (const given of source) {
    if (isReasoning(given)) {
      reasoning += given.partialReasoning;
      yield { type: 'reasoning', text: given.partialReasoning };
      continue;
    }
    const branch = await steps.add(given, signal);
    if (branch !== undefined) yield { type: 'branches', plan, branches: [branch], ...how };
    if (steps.isFinished) break;
  }
  const { branches } = steps;
  if (branches.length === 0 && before.length === 0) throw planInvalid([fault('plan_empty', 'The plan has no steps.')]);
  const notes = { provenance: { planner: 'graph', plan }, ...(reasoning === '' ? {} : { reasoning }) };
  if (branches.length === 0) return { decision: endOfNodes(before, { plan }), ...notes };
  return { decision: { kind: 'call_parallel', plan, branches, onInvalid: 'per_branch', ...how }, ...notes };
}

function isReasoning(given: PlanYield): given is { readonly partialReasoning: string } {
  return isJsonObject(given) && 'partialReasoning' in given;
}

type GivenYield = Exclude<PlanYield, { readonly partialReasoning: string }>;

class StreamedSteps {
  readonly branches: Branch[] = [];
  isFinished = false;
  readonly #run: RunView;
  readonly #rules: MoveRules;
  readonly #before: ReadonlyMap<string, PlanNode>;
  /** What was done before, for steps that this plan has not anew. */
  readonly #done: Map<string, ResultLocation>;
  /** All that was given, in this plan or not. */
  readonly #given = new Set<string>();
  readonly #inPlan = new Map<string, Branch>();
  /** Calls that were given, as text. */
  readonly #same = new Set<string>();
  /** Steps that will not run: they failed before, or hang on one that did, or were passed over. */
  readonly #passed = new Set<string>();
  /** The steps among them whose condition does not hold, or that depend on such a step. */
  readonly #over = new Set<string>();
  readonly #placement = new Placement<string>();

  constructor(run: RunView, rules: MoveRules, before: readonly PlanNode[]) {
    this.#run = run;
    this.#rules = rules;
    this.#before = new Map(before.map((node) => [node.id, node]));
    this.#done = new Map(placesOf(before));
  }

  /** `undefined` for a step that is not to be run. @throws PilotageError `plan_invalid`. */
  async add(given: GivenYield, signal: AbortSignal): Promise<Branch | undefined> {
    const step = this.#checked(this.#placed(given));
    this.isFinished = step.type === 'finish' && step.when === undefined;
    this.#given.add(step.id);
    const settled = this.#settled(step);
    if (settled === undefined) {
      this.#passed.add(step.id);
      return undefined;
    }
    const { internal } = this.#rules;
    const isSecond = this.#isSecond(branchOfStep(step, internal));
    const branch = branchOfStep(settled, internal, isAnew(this.#run) && !isSecond);
    const earlier = this.#before.get(step.id);
    if (earlier !== undefined && hasRun(earlier, [branch, branchOfStep(step, internal)])) {
      if (earlier.status !== 'done') this.#passed.add(step.id);
      return undefined;
    }
    const forbidden = await policyFaults({ steps: [settled] }, this.#run, signal, this.#rules.internal);
    if (forbidden.length > 0) throw planInvalid(forbidden);
    this.#done.delete(step.id);
    this.#inPlan.set(step.id, branch);
    this.branches.push(branch);
    return branch;
  }

  /** For a plan that goes on after an interruption: the maker has given the same step under another id, and means both. */
  #isSecond({ tool, args }: Branch): boolean {
    if (this.#before.size === 0) return false;
    const same = JSON.stringify([tool, args]);
    const isSecond = this.#same.has(same);
    this.#same.add(same);
    return isSecond;
  }

  /** Where a step stands in the list as far as it is there; the end of the plan stands behind all. */
  #placed(given: unknown): unknown {
    if (isJsonObject(given) && isJsonObject(given['finish'])) {
      const { result } = given['finish'];
      const end: PlanStep = { id: this.#freeId('finish'), type: 'finish' };
      return this.#placed(result === undefined ? end : { ...end, input: result });
    }
    const [read] = readGivenPlan({ steps: [given] }).steps;
    if (!isJsonObject(given) || read?.id === undefined || read.type === undefined) return given;
    const { id: key, type, after, behind, when } = read;
    const needs = [...namedBy(read), ...(behind ?? [])].filter((id) => this.#given.has(id));
    const saysAfter = after !== undefined || behind !== undefined;
    const step = { key, type, needs, saysAfter, ...defined({ when }) };
    const place = isLooseFinish(step) ? this.#placement.placeOfEnd(step) : this.#placement.placeOf(step);
    this.#placement.add(step);
    return { ...given, after: [...(after ?? []), ...place.after], behind: [...(behind ?? []), ...place.behind] };
  }

  #freeId(wanted: string): string {
    let id = wanted;
    while (this.#given.has(id)) id += "'";
    return id;
  }

  /** Checked in a plan with the steps that it names; of them the names are enough. */
  #checked(given: unknown): ReadyStep {
    const { tools } = this.#run;
    const { maxSteps = MAX_PLAN_STEPS, internal } = this.#rules;
    const [read] = readGivenPlan({ steps: [given] }).steps;
    const named = read === undefined ? [] : [...namedBy(read), ...(read.behind ?? []), read.id ?? ''];
    const ids = new Set(named.filter((id) => this.#given.has(id)));
    const known = [...ids].map((id) => this.#standIn(id));
    const rules = { tools, maxSteps: known.length + 1, ...defined({ internal }) };
    const checked = checkPlan({ steps: [...known, given] }, rules);
    const faults = 'faults' in checked ? [...checked.faults] : [];
    if (this.branches.length >= maxSteps) {
      faults.push(fault('plan_too_long', `The plan has more than the ${maxSteps} steps that are allowed.`));
    }
    const step = 'plan' in checked ? checked.plan.steps.at(-1) : undefined;
    if (faults.length > 0 || step === undefined) throw planInvalid(faults);
    return step;
  }

  #standIn(id: string): PlanStep {
    const isFinish = this.#inPlan.get(id)?.tool === FINISH_TOOL;
    return isFinish ? { id, type: 'finish', after: [] } : { id, type: 'message', input: id, after: [] };
  }

  /** The step with what is known already put in its place; `undefined` when it will not run. */
  #settled(step: ReadyStep): ReadyStep | undefined {
    const { when, behind = [], ...rest } = step;
    const isLost = (id: string): boolean => this.#passed.has(id) && !this.#over.has(id);
    const missing = [...step.after.filter((id) => this.#passed.has(id)), ...behind.filter(isLost)];
    if (missing.length > 0) {
      if (!missing.some(isLost)) this.#over.add(step.id);
      return undefined;
    }
    const left = {
      after: step.after.filter((id) => this.#inPlan.has(id)),
      behind: behind.filter((id) => this.#inPlan.has(id)),
    };
    const [ready = step] = boundToEarlier({ planId: '', steps: [{ ...rest, ...left }] }, this.#done, this.#run).steps;
    if (when === undefined) return ready;
    if (this.#inPlan.has(when.step)) return { ...ready, when };
    const decided = this.#before.get(when.step);
    if (decided?.artifact === undefined && jsonEquals(decided?.value, when.equals)) return ready;
    this.#over.add(step.id);
    return undefined;
  }
}

/** Whether the step has a result and is one of these. The same content under another id is another step. */
function hasRun({ status, branch }: PlanNode, same: readonly Branch[]): boolean {
  if (status !== 'done' && status !== 'failed' && status !== 'unknown') return false;
  return same.some(({ tool, args }) => tool === branch.tool && jsonEquals(args, branch.args));
}
