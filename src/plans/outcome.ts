/** What became of the plans of a run, read off its trajectory; and the references of later plans to what they came to. */
import {
  type ArtifactRef,
  allReferencesIn,
  asJson,
  atPointer,
  type Branch,
  branchesOf,
  branchId,
  type Control,
  defined,
  type ErrorData,
  FINISH_TOOL,
  type Finish,
  fillReferences,
  isPassedOver,
  isWholeValue,
  type Json,
  type JsonObject,
  MESSAGE_TOOL,
  mapReferences,
  type Outcome,
  PilotageError,
  type Reference,
  type RunView,
  resolveReferences,
  type Step,
} from '#core';
import type { ReadyPlan, ReadyStep } from './plan.ts';

export interface PlanNode {
  readonly id: string;
  /** The index of the step of the run that has carried out the plan. */
  readonly step: number;
  readonly index: number;
  readonly branch: Branch;
  readonly status: 'done' | 'failed' | 'skipped' | 'cancelled' | 'unknown';
  readonly value?: Json;
  /** The whole value; `value` is a preview of it. */
  readonly artifact?: ArtifactRef;
  readonly error?: ErrorData;
  /**
   * True for a node that was skipped on purpose: its condition did not hold, somebody took it out, or this is so for a node before
   * it.
   */
  readonly passed?: true;
}

/** The nodes of a plan step, in the order of its branches. */
export function planNodes(step: Step): readonly PlanNode[] {
  const branches = branchesOf(step.decision);
  const outcomes = step.calls.map(({ outcome }) => outcome);
  const known = new Map<number, boolean>();
  const passed = (index: number): { readonly passed?: true } =>
    isPassedOver(index, (other) => outcomes[other], known) ? { passed: true } : {};
  return branches.map((branch, index) => {
    const node = { id: branchId(branch, index), step: step.index, index, branch };
    const outcome = outcomes[index];
    switch (outcome?.kind) {
      case 'value': {
        const { value, artifact } = outcome;
        return { ...node, status: 'done', value, ...defined({ artifact }) };
      }
      case 'error':
        return { ...node, status: 'failed', error: outcome.error };
      case 'skipped':
        return { ...node, status: 'skipped', error: outcome.error, ...passed(index) };
      case 'cancelled':
      case 'unknown':
        return { ...node, status: outcome.kind, error: outcome.error };
      case 'verdict':
      case undefined:
        return {
          ...node,
          status: 'cancelled',
          error: { code: 'branch_not_started', message: 'The call was not started.' },
        };
      default:
        return outcome satisfies never;
    }
  });
}

/** The last step of the run that carried out a plan. A single message is not a plan. */
export function lastPlan({ trajectory }: RunView): Step | undefined {
  for (let index = trajectory.count - 1; index >= 0; index -= 1) {
    const step = trajectory.step(index);
    if (step !== undefined && planIdOf(step) !== undefined && singleStepOf(step) === undefined) return step;
  }
  return undefined;
}

export function planIdOf({ decision }: Pick<Step, 'decision'>): string | undefined {
  return decision.kind === 'call_parallel' ? decision.plan : undefined;
}

/** Whether the plan was cut off because the process died while its planner was making it. */
export function wasInterrupted({ error }: Pick<Step, 'error'>): boolean {
  return error?.code === 'plan_interrupted';
}

/** Whether the goal was replaced while the plan was carried out, or since. */
export function wasRedirected({ controls, trajectory }: RunView, { index }: Step): boolean {
  const isRedirect = ({ type }: Control): boolean => type === 'REDIRECT';
  if (trajectory.count === index + 1 && controls.some(isRedirect)) return true;
  return trajectory.steering.some(({ atStep, control }) => atStep > index && isRedirect(control));
}

/** An id that no plan of the run has yet. */
export function freshPlanId({ trajectory }: RunView, wanted = 'plan'): string {
  const taken = new Set<string>();
  for (let index = 0; index < trajectory.count; index += 1) {
    const step = trajectory.step(index);
    const id = step && planIdOf(step);
    if (id !== undefined) taken.add(id);
  }
  if (!taken.has(wanted)) return wanted;
  let id = `${wanted}-${trajectory.count}`;
  while (taken.has(id)) id += "'";
  return id;
}

/**
 * How a run ends with this plan. `goal` with the value of the finish node; of a plan that has none, when nothing is left undone,
 * with `{ results }` by node. Otherwise `no_path`; when every finish was passed over, its metadata has `error` with the code
 * `plan_end_missed`.
 * @param earlier nodes of the plans of which this plan is the rest.
 * @throws PilotageError `plan_failed` when nodes have failed, so that it came to no end: the run fails, and can be retried.
 */
export function finishOfPlan(step: Step, earlier: readonly PlanNode[] = []): Finish {
  return endOfNodes([...earlier, ...planNodes(step)], notesOf(step));
}

/** What is said of a plan in the metadata of its run's end. */
export function notesOf({ decision, error }: Step): JsonObject {
  const notes = { plan: planIdOf({ decision }) ?? '' };
  return error === undefined ? notes : { ...notes, error: { code: error.code, message: error.message } };
}

/** @param nodes of each id the last counts. @param notes with an `error` the plan was not made to its end. */
export function finishOfNodes(nodes: readonly PlanNode[], notes: JsonObject): Finish {
  const latest = latestOf(nodes);
  const undone = undoneNodes(latest);
  const metadata: JsonObject = {
    ...notes,
    ...idsOf('failed', undone, 'failed'),
    ...idsOf('unknown', undone, 'unknown'),
    ...idsOf('skipped', undone, 'skipped'),
    ...idsOf('cancelled', undone, 'cancelled'),
    ...errorsOf(undone),
  };
  const end = latest.find(({ branch, status }) => branch.tool === FINISH_TOOL && status === 'done');
  if (end?.artifact !== undefined) {
    return { kind: 'finish', reason: 'goal', payload: end.artifact, stored: true, metadata };
  }
  if (end !== undefined) return { kind: 'finish', reason: 'goal', payload: end.value ?? null, metadata };
  if (undone.length > 0 || notes['error'] !== undefined) return { kind: 'finish', reason: 'no_path', metadata };
  const ends = latest.filter(({ branch }) => branch.tool === FINISH_TOOL);
  if (ends.length > 0) {
    return { kind: 'finish', reason: 'no_path', metadata: { ...metadata, error: noEndReached(ends, latest) } };
  }
  return { kind: 'finish', reason: 'goal', payload: { results: resultsOf(latest) }, metadata };
}

/** @param notes with an `error` the plan was not made to its end. */
export function endOfNodes(nodes: readonly PlanNode[], notes: JsonObject): Finish {
  const failed = planFailed(nodes, notes);
  if (failed !== undefined) throw failed;
  return finishOfNodes(nodes, notes);
}

/**
 * Why a run fails with these nodes of its plan; `undefined` when none of them has failed, or the plan came to its end all the same. The
 * code is `plan_failed`; `data` has the ids of the nodes that `failed`, were `skipped`, `cancelled` or are `unknown`, the `errors`, and
 * the nodes that are `done`.
 */
export function planFailed(nodes: readonly PlanNode[], notes: JsonObject): PilotageError | undefined {
  const { reason, metadata = {} } = finishOfNodes(nodes, notes);
  if (reason === 'goal') return undefined;
  const latest = latestOf(nodes);
  const [first, ...more] = undoneNodes(latest).filter(({ status }) => status !== 'skipped');
  if (first === undefined) return undefined;
  const why = first.error?.message ?? 'It has no value.';
  const others = more.length === 0 ? '' : ` And ${more.length} more.`;
  const done = latest.flatMap(({ id, status }) => (status === 'done' ? [id] : []));
  const message = `The node ${JSON.stringify(first.id)} of the plan has failed: ${why}${others}`;
  return new PilotageError('plan_failed', message, { data: { ...metadata, done } });
}

function latestOf(nodes: readonly PlanNode[]): readonly PlanNode[] {
  return [...new Map(nodes.map((node) => [node.id, node])).values()];
}

/** Every end of the plan was passed over: a condition did not hold, or somebody took it out. */
function noEndReached(ends: readonly PlanNode[], nodes: readonly PlanNode[]): JsonObject {
  const told = ends.slice(0, MAX_ERRORS).map((end) => `${JSON.stringify(end.id)}: ${whyPassed(end, nodes)}`);
  const more = ends.length > told.length ? ` And ${ends.length - told.length} more.` : '';
  const message = `The plan reached none of its finish steps. ${told.join(' ')}${more}`;
  return { code: 'plan_end_missed', message, nodes: ends.map(({ id }) => id).slice(0, MAX_ERRORS) };
}

/** The first cause in words, with the names of nodes. */
function whyPassed(end: PlanNode, nodes: readonly PlanNode[]): string {
  const causeOf = ({ error, step }: PlanNode): PlanNode | undefined =>
    nodes.find((node) => node.step === step && node.index === error?.data?.['branch']);
  const seen = new Set<PlanNode>();
  let at = end;
  for (let cause = causeOf(at); cause?.status === 'skipped' && !seen.has(cause); cause = causeOf(at)) {
    seen.add(cause);
    at = cause;
  }
  const cause = causeOf(at);
  const about = at === end ? '' : `the step ${JSON.stringify(at.id)} before it was skipped: `;
  if (cause === undefined) return `${about}${at.error?.message ?? 'The step was skipped.'}`;
  return `${about}the condition on ${JSON.stringify(cause.id)} does not hold.`;
}

/** What did not end well, and was not meant to be passed over. */
export function undoneNodes(nodes: readonly PlanNode[]): readonly PlanNode[] {
  return nodes.filter(({ status, passed }) => status !== 'done' && passed !== true);
}

function resultsOf(nodes: readonly PlanNode[]): JsonObject {
  const told = nodes.filter(({ branch, status }) => status === 'done' && branch.tool !== MESSAGE_TOOL);
  return Object.fromEntries(told.map(({ id, value = null }) => [id, value]));
}

/** How many nodes say why they came to nothing. */
const MAX_ERRORS = 20;

function errorsOf(nodes: readonly PlanNode[]): JsonObject {
  const failed = nodes.filter(({ status }) => status === 'failed' || status === 'unknown').slice(0, MAX_ERRORS);
  const errors = failed.flatMap(({ id, error }) =>
    error === undefined ? [] : [[id, { code: error.code, message: error.message }] as const],
  );
  return errors.length === 0 ? {} : { errors: Object.fromEntries(errors) };
}

function idsOf(name: string, nodes: readonly PlanNode[], wanted: PlanNode['status']): JsonObject {
  const ids = nodes.flatMap(({ id, status }) => (status === wanted ? [id] : []));
  return ids.length === 0 ? {} : { [name]: ids };
}

/**
 * Where the nodes of the plans of the run, and its single steps, have left a value; of each id the latest.
 * @param isWhole without those of which the trajectory has only a preview.
 */
export function earlierPlaces({ trajectory }: RunView, isWhole: boolean): ReadonlyMap<string, ResultLocation> {
  const places = new Map<string, ResultLocation>();
  for (let index = 0; index < trajectory.count; index += 1) {
    const step = trajectory.step(index);
    if (step === undefined) continue;
    const single = planIdOf(step) === undefined ? singleStepOf(step) : undefined;
    if (single === undefined && planIdOf(step) === undefined) continue;
    for (const [call, branch] of branchesOf(step.decision).entries()) {
      const outcome = step.calls[call]?.outcome;
      if (outcome?.kind !== 'value' || (isWhole && !isWholeValue(outcome))) continue;
      const id = branchId(branch, call);
      places.set(single ?? id, { step: index, branch: id });
    }
  }
  return places;
}

/** Where the values of nodes are. */
export function placesOf(nodes: Iterable<PlanNode>): ReadonlyMap<string, ResultLocation> {
  const done = [...nodes].filter(({ status }) => status === 'done');
  return new Map(done.map(({ id, step }) => [id, { step, branch: id }]));
}

/** The id of the step of a maker that gives one at a time. */
function singleStepOf({ provenance }: Pick<Step, 'provenance'>): string | undefined {
  const id = provenance?.['step'];
  return typeof id === 'string' ? id : undefined;
}

// References in the inputs of steps to what earlier plans came to: they become references to the step of the run that has it.

/** Where in the run the result of a step of a plan is: by its step, and the branch of that. */
export interface ResultLocation {
  readonly step: number;
  readonly branch: string;
}

/**
 * The plan with references to steps of earlier plans bound to where in the run their results are: a value is looked up when the
 * call is made, and never becomes part of the plan. A step of the plan itself wins over an earlier one of the same id.
 * @throws PilotageError `reference_unresolved` when nothing is at a path.
 */
export function boundToEarlier(plan: ReadyPlan, places: ReadonlyMap<string, ResultLocation>, run: RunView): ReadyPlan {
  const own = new Set(plan.steps.map(({ id }) => id));
  const bind = (reference: Reference): Reference => {
    const place = reference.step === undefined && !own.has(reference.$from) ? places.get(reference.$from) : undefined;
    const bound = place === undefined ? reference : { ...reference, $from: place.branch, step: place.step };
    if (bound.step !== undefined) earlierValue(run, bound);
    return bound;
  };
  return { ...plan, steps: plan.steps.map((step) => boundStep(step, bind)) };
}

function boundStep(step: ReadyStep, bind: (reference: Reference) => Reference): ReadyStep {
  const { input, meta } = step;
  if (allReferencesIn([input ?? null, meta ?? null]).length === 0) return step;
  return {
    ...step,
    ...(input === undefined ? {} : { input: mapReferences(input, bind) }),
    ...(meta === undefined ? {} : { meta: mapReferences(meta, bind) as JsonObject }),
  };
}

/** Arguments as their tool gets them, as far as that is known before anything runs: for a look at them, and not to be carried out. */
export function knownArgs(args: Json, run: RunView): Json {
  return fillReferences(args, (reference) => {
    const known = reference.step === undefined ? undefined : earlierValue(run, reference);
    return known ?? asJson(reference);
  });
}

/**
 * The arguments of a call that stands alone, which has its values from the start.
 * @throws PilotageError `reference_unresolved` when one of them is stored elsewhere.
 */
export function wholeArgs(args: Json, run: RunView): Json {
  return resolveReferences(args, (reference) => earlierValue(run, { ...reference, path: '' }));
}

/** `undefined`: the value is stored as an artifact. @throws PilotageError `reference_unresolved`. */
function earlierValue({ trajectory }: RunView, { $from, path = '', step = -1 }: Reference): Json | undefined {
  const { decision, calls = [] } = trajectory.step(step) ?? {};
  const index =
    decision === undefined ? -1 : branchesOf(decision).findIndex((each, at) => branchId(each, at) === $from);
  const outcome: Outcome | undefined = calls[index]?.outcome;
  if (outcome?.kind === 'value' && !isWholeValue(outcome)) return undefined;
  const found = outcome?.kind === 'value' ? atPointer(outcome.value, path) : undefined;
  if (found !== undefined) return found;
  const where = `the result of ${JSON.stringify($from)} of step ${step}`;
  throw new PilotageError('reference_unresolved', `Nothing is at ${JSON.stringify(path)} in ${where}.`);
}
