/** `{ "$from": … }` in the inputs of steps, beyond what the core knows of it: where they are, and which are known already. */
import type { Json } from '../../core/json.ts';
import { asReference, resolveReferences } from '../../core/reference.ts';
import type { ReadyPlan, ReadyStep } from './plan.ts';

/** JSON Pointers to the references in the value. */
export function referencePaths(value: Json): readonly string[] {
  const found: string[] = [];
  const open: { readonly at: string; readonly value: Json }[] = [{ at: '', value }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { at, value: inner } = next;
    if (typeof inner !== 'object' || inner === null) continue;
    if (asReference(inner) !== undefined) {
      found.push(at);
      continue;
    }
    for (const [key, part] of Object.entries(inner)) {
      open.push({ at: `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`, value: part });
    }
  }
  return found;
}

/**
 * The plan with the results of earlier plans in the place of the references to them. A step of the plan itself wins over
 * an earlier one of the same id.
 * @throws PilotageError `reference_unresolved` when nothing is at a path.
 */
export function withEarlierValues(plan: ReadyPlan, values: ReadonlyMap<string, Json>): ReadyPlan {
  if (values.size === 0) return plan;
  const own = new Set(plan.steps.map(({ id }) => id));
  const steps = plan.steps.map((step): ReadyStep => {
    const { input } = step;
    return input === undefined ? step : { ...step, input: resolveKnown(input, own, values) };
  });
  return { ...plan, steps };
}

function resolveKnown(value: Json, own: ReadonlySet<string>, values: ReadonlyMap<string, Json>): Json {
  if (typeof value !== 'object' || value === null) return value;
  const reference = asReference(value);
  if (reference !== undefined) {
    const { $from: id, step } = reference;
    // What names its step is looked up when the call is made.
    if (step !== undefined || own.has(id) || !values.has(id)) return value;
    return resolveReferences(value, ({ $from }) => values.get($from));
  }
  if (Array.isArray(value)) return value.map((item) => resolveKnown(item, own, values));
  const fields = Object.entries(value).map(([key, part]) => [key, resolveKnown(part, own, values)] as const);
  return Object.fromEntries(fields);
}
