/** References in the inputs of steps to what earlier plans came to: they become references to the step of the run that has it. */
import {
  allReferencesIn,
  asJson,
  asReference,
  atPointer,
  branchesOf,
  branchId,
  fillReferences,
  type Json,
  type JsonObject,
  mapReferences,
  type Outcome,
  PilotageError,
  type Reference,
  type RunView,
  resolveReferences,
  unescaped,
} from '#core';
import type { ReadyPlan, ReadyStep } from './plan.ts';

/** The input as its tool may get it, with references where their values will be. */
export function shapeOf(input: Json): { readonly value: Json; readonly open: readonly string[] } {
  const open: string[] = [];
  if (allReferencesIn(input).length > 0) findReferences(input, open);
  return { value: unescaped(input), open };
}

/** Notes JSON Pointers to the references in the value. */
function findReferences(value: Json, found: string[]): void {
  const open: { readonly at: string; readonly value: Json }[] = [{ at: '', value }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { at, value: inner } = next;
    if (typeof inner !== 'object' || inner === null || allReferencesIn(inner).length === 0) continue;
    if (asReference(inner) !== undefined) {
      found.push(at);
      continue;
    }
    for (const [key, part] of Object.entries(inner)) {
      open.push({ at: `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`, value: part });
    }
  }
}

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
  if (outcome?.kind === 'value' && outcome.artifact !== undefined) return undefined;
  const found = outcome?.kind === 'value' ? atPointer(outcome.value, path) : undefined;
  if (found !== undefined) return found;
  const where = `the result of ${JSON.stringify($from)} of step ${step}`;
  throw new PilotageError('reference_unresolved', `Nothing is at ${JSON.stringify(path)} in ${where}.`);
}
