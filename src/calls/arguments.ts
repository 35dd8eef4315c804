/** The arguments of a call as its tool gets them: those of the route that it goes, with values in the place of references. */

import {
  allReferencesIn,
  type Branch,
  branchesOf,
  branchId,
  type CallRecord,
  type ErrorData,
  type Json,
  openRoute,
  PilotageError,
  type Reference,
  resolveReferences,
  type Step,
  shownName,
  unescaped,
} from '#core';
import type { ArtifactStore } from '#journal';
import type { OpenStep, RunState } from '#state';
import type { AuthorisedTools, ReadyTool } from '#tools';
import { wholeValue } from './large-values.ts';

/** Whether a call can be made at all: its tool in the authorised view, and arguments that fit. */

/** Arguments that are ready to be handed to a tool. */
export type PreparedCall = ({ readonly tool: ReadyTool; readonly args: unknown } | { readonly error: ErrorData }) & {
  /** The arguments before the schema has filled in or changed anything. */
  readonly given: Json;
};

/**
 * Resolves the tool and checks the arguments. Nothing has been started when this gives an error.
 * @param offered the tools that whoever decided was shown, when they were not all.
 */
export function prepareCall(
  tools: AuthorisedTools,
  name: string,
  args: Json,
  offered?: readonly string[],
): PreparedCall | Promise<PreparedCall> {
  const tool = tools.ready(name);
  if (tool === undefined) return { error: unknownTool(tools, name), given: args };
  if (offered?.includes(name) === false) return { error: notOffered(name, offered), given: args };
  const checked = tool.checkArgs(args);
  return checked instanceof Promise
    ? checked.then((result) => fitted(tool, name, args, result))
    : fitted(tool, name, args, checked);
}

function fitted(
  tool: ReadyTool,
  name: string,
  given: Json,
  checked: Awaited<ReturnType<ReadyTool['checkArgs']>>,
): PreparedCall {
  if (checked.ok) return { tool, args: checked.value, given };
  const message = `The arguments of ${name} do not fit its schema: ${checked.why}.`;
  return { error: { code: 'tool_invalid_args', message }, given };
}

const MAX_NAMES = 50;

/** The error for an unknown tool. The words are the same when the tool exists but this run may not use it. */
function unknownTool(tools: AuthorisedTools, name: string): ErrorData {
  const known = tools.list().map((tool) => tool.name);
  if (tools.withholds(name)) return notOffered(name, known);
  const message = `There is no tool named ${JSON.stringify(shownName(name))}. ${whichTools(known)}`;
  return { code: 'tool_not_found', message };
}

/** The error for a tool that the run may use, and that whoever decided was not shown. */
export function notOffered(name: string, offered: readonly string[]): ErrorData {
  const message = `The tool ${JSON.stringify(shownName(name))} was not offered, and was not called. ${whichTools(offered)}`;
  return { code: 'tool_not_offered', message };
}

function whichTools(known: readonly string[]): string {
  const names = known.slice(0, MAX_NAMES).join(', ') || 'none';
  return `The tools are: ${names}${known.length > MAX_NAMES ? `, and ${known.length - MAX_NAMES} more` : ''}.`;
}

export interface ArgsPorts {
  readonly state: Pick<RunState, 'identity' | 'steps'>;
  readonly artifacts: ArtifactStore;
}

export interface OpenArgsPorts extends ArgsPorts {
  /** Where a branch of the open step stands among its calls. */
  indexOf(id: string): number | undefined;
}

/** By the id of a branch of the same step. */
type RecordOf = (id: string) => CallRecord | null | undefined;

/**
 * What was approved goes before what somebody changed in the plan, and that before what was decided.
 * @throws PilotageError `reference_unresolved` (or rejects with it) for a reference to a branch without a value, to nothing
 * in its value, or to a step that is not earlier; `artifact_not_found` when the store has a value no more.
 */
export function argsOf(open: OpenStep, index: number, branch: Branch, ports: OpenArgsPorts): Json | Promise<Json> {
  const { approvals, edits } = open;
  const isAsDecided = approvals.length === 0 && edits.length === 0 && branch.routes === undefined;
  if (isAsDecided && open.move.decision.kind !== 'call_parallel') return branch.args;
  const approved = approvals.find(({ call }) => call === index)?.args;
  if (approved !== undefined) return approved;
  const edited = edits.find(({ call }) => call === index)?.args;
  const recordOf: RecordOf = (id) => {
    const at = ports.indexOf(id);
    return at === undefined ? undefined : open.calls[at];
  };
  const { step, decision } = open.move;
  return asGiven({ step, isAlone: decision.kind !== 'call_parallel' }, branch, edited, recordOf, ports);
}

/** The arguments of a call of a step that has ended. */
export async function argsInStep(step: Step, index: number, ports: ArgsPorts): Promise<Json> {
  const { decision, given = [] } = step;
  const branches = branchesOf(decision);
  const records = recordsOf(step);
  const edited = given.find(({ call }) => call === index)?.args;
  // Nobody refers to another call where there is but one; what was given is written as in a plan all the same.
  const isAlone = edited === undefined && decision.kind !== 'call_parallel';
  const at = { step: step.index, isAlone };
  return asGiven(at, branches[index] as Branch, edited, (id) => records.get(id), ports);
}

/** The arguments that were planned, even when somebody has replaced them. Otherwise like `argsInStep`. */
export function plannedArgs({ given: _, ...step }: Step, index: number, ports: ArgsPorts): Promise<Json> {
  return argsInStep(step, index, ports);
}

interface At {
  readonly step: number;
  /** Only branches refer to others; the arguments of a call alone are its tool's. */
  readonly isAlone: boolean;
}

function asGiven(
  { step, isAlone }: At,
  branch: Branch,
  edited: Json | undefined,
  recordOf: RecordOf,
  ports: ArgsPorts,
): Json | Promise<Json> {
  const decided =
    branch.routes === undefined ? branch.args : (openRoute(branch, (id) => recordOf(id)?.outcome)?.args ?? null);
  const args = edited === undefined ? decided : edited;
  if (isAlone) return args;
  const references = allReferencesIn(args);
  return references.length === 0 ? unescaped(args) : resolved(step, args, references, recordOf, ports);
}

async function resolved(
  now: number,
  args: Json,
  references: readonly Reference[],
  recordOf: RecordOf,
  ports: ArgsPorts,
): Promise<Json> {
  const values = new Map<string, Json>();
  for (const reference of references) {
    const key = keyOf(reference);
    if (values.has(key)) continue;
    const { $from, step } = reference;
    const record = step === undefined ? recordOf($from) : earlier(now, $from, step, ports);
    if (record?.outcome.kind !== 'value') continue;
    values.set(key, await wholeValue(record.outcome, ports.state.identity, ports.artifacts));
  }
  return resolveReferences(args, (reference) => values.get(keyOf(reference)));
}

function keyOf({ $from, step }: Reference): string {
  return `${step ?? ''}/${$from}`;
}

function earlier(now: number, id: string, at: number, { state }: ArgsPorts): CallRecord | undefined {
  const step = state.steps[at];
  if (step !== undefined && at < now) return recordsOf(step).get(id);
  throw new PilotageError(
    'reference_unresolved',
    `The branch ${JSON.stringify(id)} of step ${at} is referred to in step ${now}, which step ${at} is not before.`,
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
