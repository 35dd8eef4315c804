/** The arguments of a call as its tool gets them: those of the route that it goes, with values in the place of references. */
import { type Branch, branchesOf, branchId } from '../core/decision.ts';
import { PilotageError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import { allReferencesIn, type Reference, resolveReferences, unescaped } from '../core/reference.ts';
import { openRoute } from '../core/routes.ts';
import type { CallRecord, Step } from '../core/step.ts';
import type { ArtifactStore } from '../journal/port.ts';
import type { OpenStep, RunState } from '../view/run-state.ts';
import { wholeValue } from './heavy.ts';

export interface ArgsPorts {
  readonly state: RunState;
  readonly artifacts: ArtifactStore;
  /** Where a branch of the open step stands among its calls. */
  indexOf(id: string): number | undefined;
}

/**
 * What was approved goes before what somebody changed in the plan, and that before what was decided.
 * @throws PilotageError `reference_unresolved` (or rejects with it) for a reference to a branch without a value, to nothing
 * in its value, or to a step that is not earlier; `artifact_not_found` when the store has a value no more.
 */
export function argsOf(open: OpenStep, index: number, branch: Branch, ports: ArgsPorts): Json | Promise<Json> {
  const approved = open.approvals.find(({ call }) => call === index)?.args;
  if (approved !== undefined) return approved;
  const outcomeOf = (id: string): Outcome | undefined => recordOf(open, id, ports)?.outcome;
  const edited = open.edits.find(({ call }) => call === index)?.args;
  const given = branch.routes === undefined ? branch.args : (openRoute(branch, outcomeOf)?.args ?? null);
  const args = edited ?? given;
  // Only branches refer to others; the arguments of a call alone are its tool's.
  if (open.move.decision.kind !== 'call_parallel') return args;
  const references = allReferencesIn(args);
  return references.length === 0 ? unescaped(args) : resolved(open, args, references, ports);
}

async function resolved(open: OpenStep, args: Json, references: readonly Reference[], ports: ArgsPorts): Promise<Json> {
  const values = new Map<string, Json>();
  for (const reference of references) {
    const key = keyOf(reference);
    if (values.has(key)) continue;
    const { $from, step } = reference;
    const record = step === undefined ? recordOf(open, $from, ports) : earlier(open, $from, step, ports);
    if (record?.outcome.kind !== 'value') continue;
    values.set(key, await wholeValue(record.outcome, ports.state.identity, ports.artifacts));
  }
  return resolveReferences(args, (reference) => values.get(keyOf(reference)));
}

function keyOf({ $from, step }: Reference): string {
  return `${step ?? ''}/${$from}`;
}

function recordOf({ calls }: OpenStep, id: string, ports: ArgsPorts): CallRecord | null | undefined {
  const index = ports.indexOf(id);
  return index === undefined ? undefined : calls[index];
}

function earlier({ move }: OpenStep, id: string, at: number, { state }: ArgsPorts): CallRecord | undefined {
  const step = state.steps[at];
  if (step !== undefined) return recordsOf(step).get(id);
  throw new PilotageError(
    'reference_unresolved',
    `The branch ${JSON.stringify(id)} of step ${at} is referred to in step ${move.step}, which step ${at} is not before.`,
  );
}

/** Closed steps never change, and each of many branches may refer to each of many. */
const known = new WeakMap<Step, ReadonlyMap<string, CallRecord>>();

function recordsOf(step: Step): ReadonlyMap<string, CallRecord> {
  const found = known.get(step);
  if (found !== undefined) return found;
  const { calls } = step;
  const made = new Map(
    branchesOf(step.decision).flatMap((branch, index) => {
      const record = calls[index];
      return record === undefined ? [] : [[branchId(branch, index), record] as const];
    }),
  );
  known.set(step, made);
  return made;
}
