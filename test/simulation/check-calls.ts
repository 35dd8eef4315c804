/**
 * What must hold when a tool is entered: it is this run's call, allowed, approved, in its order, and with its own arguments. All of it is
 * read off the entries by hand: nothing here asks the code that it judges.
 */
import { type Branch, type Entry, isJsonObject, type Json, type JsonObject, type Outcome, type Route } from '#core';
import type { ToolContext } from '#tools';
import { type CallArgs, SECRET_SCOPE } from './call-args.ts';
import type { Attempt, Ledger } from './ledger.ts';

export function checkIdentity({ identity }: Pick<ToolContext, 'identity'>, ledger: Ledger): void {
  const first = ledger.everRun(identity.run)?.entries[0];
  if (first?.kind === 'started' && JSON.stringify(first.identity) === JSON.stringify(identity)) return;
  ledger.violated('no foreign data', `a tool was given the identity ${JSON.stringify(identity)}`, identity.run);
}

/** No call is made that the program's policy forbids, or whose scope the run does not hold. */
export function checkAllowed(tool: string, { id, forbidden }: CallArgs, run: string, ledger: Ledger): void {
  if (forbidden !== undefined) ledger.violated('gates', `${tool} ${id} ran although the policy forbids it`, run);
  const first = ledger.everRun(run)?.entries[0];
  if (tool !== 'secret' || (first?.kind === 'started' && first.scopes.includes(SECRET_SCOPE))) return;
  ledger.violated('gates', `${tool} ${id} ran in a run that does not hold its scope`, run);
}

/** A call is made with its own arguments, or with those of its approval, and only when it was approved. */
export function checkCall(
  tool: string,
  args: Pick<CallArgs, 'id'>,
  { identity: { run }, idempotencyKey }: Pick<ToolContext, 'identity' | 'idempotencyKey'>,
  ledger: Ledger,
  gated: boolean,
): void {
  const entries = ledger.everRun(run)?.entries ?? [];
  const place = placeOf(entries, args.id, idempotencyKey);
  if (place === undefined) {
    ledger.violated('no foreign data', `no call of the run has the id ${args.id}`, run);
    return;
  }
  if (place.branch.tool !== tool)
    ledger.violated('order', `${args.id} is a call of ${place.branch.tool}, not of ${tool}`, run);
  const approval = approvalOf(entries, place);
  checkOrder(entries, place, args, approval?.args !== undefined, run, ledger);
  if (!gated) return;
  if (approval === undefined) {
    ledger.violated('gates', `${tool} ${args.id} ran without an approval`, run);
    return;
  }
  if (approval.args !== undefined && !isSame(approval.args, args)) {
    ledger.violated('gates', `${tool} ${args.id} ran with other arguments than were approved`, run);
  }
}

function approvalOf(entries: readonly Entry[], { step, call }: Place): { readonly args?: Json } | undefined {
  const tokens = entries.flatMap((entry) =>
    entry.kind === 'paused' && entry.step === step && entry.call === call ? [entry.token] : [],
  );
  const found = entries.find(
    (entry) => entry.kind === 'resumed' && entry.verdict === 'approve' && tokens.includes(entry.token),
  );
  // Of several people one may have put other arguments in the place of the call's own.
  const edit = entries.findLast(
    (entry) => entry.kind === 'approved' && entry.args !== undefined && tokens.includes(entry.token),
  );
  if (edit?.kind === 'approved' && edit.args !== undefined) return { args: edit.args };
  return found?.kind === 'resumed' ? found : undefined;
}

/** All that the branch comes after has ended; it goes the first way on which all has a value, and the one that was asked for. */
function checkOrder(
  entries: readonly Entry[],
  { step, branch }: Place,
  args: Pick<CallArgs, 'id'>,
  isEdited: boolean,
  run: string,
  ledger: Ledger,
): void {
  const ways: readonly Route[] = branch.routes ?? [branch];
  const outcomes = outcomesOf(entries);
  const at = (id: string): Outcome | undefined => outcomes.get(`${step} ${id}`);
  const { id } = args;
  const missing = ways.flatMap(needsOf).find((need) => at(need) === undefined);
  if (missing !== undefined) ledger.violated('order', `${id} ran before ${missing} had ended`, run);
  const gone = ways.find((way) => isOpen(way, at));
  if (gone === undefined) {
    ledger.violated('order', `${id} ran, and not all that it needs has the value asked for`, run);
  } else if (!isEdited) {
    const wanted = filled(gone.args, step, outcomes) ?? null;
    if (!isSame(wanted, args))
      ledger.violated('order', `${id} was called with ${text(args)}, and not with ${text(wanted)}`, run);
  }
}

function needsOf({ after = [], when, args }: Route): string[] {
  const own = referencesIn(args).flatMap(({ $from, step }) => (step === undefined ? [$from] : []));
  return [...after, ...(when === undefined ? [] : [when.branch]), ...own];
}

function isOpen(way: Route, at: (id: string) => Outcome | undefined): boolean {
  if (needsOf(way).some((need) => at(need)?.kind !== 'value')) return false;
  const { when } = way;
  const outcome = when === undefined ? undefined : at(when.branch);
  return when === undefined || (outcome?.kind === 'value' && isSame(outcome.value, when.equals));
}

interface Reference {
  readonly $from: string;
  readonly path: string;
  readonly step?: number;
}

function referencesIn(value: Json): Reference[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isJsonObject(value)) return [];
  return isReference(value) ? [value] : Object.values(value).flatMap(referencesIn);
}

function isReference(value: JsonObject): value is JsonObject & Reference {
  return typeof value['$from'] === 'string';
}

/** The arguments with what they refer to; `undefined` where that is not there. Only ids are referred to. */
function filled(value: Json, step: number, outcomes: ReadonlyMap<string, Outcome>): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => filled(item, step, outcomes) ?? null);
  if (!isJsonObject(value)) return value;
  if (isReference(value)) {
    const outcome = outcomes.get(`${value.step ?? step} ${value.$from}`);
    if (outcome?.kind !== 'value') return undefined;
    const whole = outcome.artifact === undefined ? outcome.value : partOf(outcome.value, 'preview');
    return partOf(whole, value.path.slice(1));
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, step, outcomes) ?? null]));
}

function partOf(value: Json | undefined, key: string): Json | undefined {
  return value !== undefined && isJsonObject(value) ? value[key] : undefined;
}

/** By step and branch id what calls have come to, as entries say it. */
function outcomesOf(entries: readonly Entry[]): Map<string, Outcome> {
  const outcomes = new Map<string, Outcome>();
  const ids = new Map<number, string[]>();
  const pauses = new Map<string, Extract<Entry, { kind: 'paused' }>>();
  const note = (step: number, call: number, outcome: Outcome): void => {
    outcomes.set(`${step} ${ids.get(step)?.[call] ?? call}`, outcome);
  };
  for (const entry of entries) {
    if (entry.kind === 'moved' || entry.kind === 'plan_grown') {
      const known = ids.get(entry.step) ?? [];
      ids.set(entry.step, known);
      for (const branch of branchesIn(entry)) known.push(branch.id ?? String(known.length));
    }
    if (entry.kind === 'call_ended') note(entry.step, entry.call, entry.outcome);
    if (entry.kind === 'paused') pauses.set(entry.token, entry);
    const pause = entry.kind === 'resumed' ? pauses.get(entry.token) : undefined;
    if (entry.kind !== 'resumed' || pause?.step === undefined || pause.call === undefined) continue;
    // What a call asks in the middle of its work ends nothing but a wait of it.
    const isRefused =
      pause.reason !== 'in_doubt' &&
      pause.wait === undefined &&
      ['reject', 'timeout', 'superseded'].includes(entry.verdict);
    if (isRefused) note(pause.step, pause.call, REFUSED);
    if (entry.outcome !== undefined) note(pause.step, pause.call, entry.outcome);
  }
  return outcomes;
}

const REFUSED: Outcome = { kind: 'error', error: { code: 'refused', message: 'Somebody said no.' } };

export interface Place {
  readonly step: number;
  readonly call: number;
  readonly branch: Branch;
}

/**
 * The call of the run with this id among its arguments that the key names: a process that stood still may be at a call of a step that others
 * have gone on from. A key of an earlier run names none; then it is the last call with the id.
 */
function placeOf(entries: readonly Entry[], id: string, key: string): Place | undefined {
  const places = placesOf(entries, id);
  return places.find(({ step, call }) => key.endsWith(`/${step}.${call}`)) ?? places.at(-1);
}

/** Every call of the run with this id among its arguments, in order. */
export function placesOf(entries: readonly Entry[], id: string): Place[] {
  return placesWhere(entries, (branch) => {
    const ways: readonly Route[] = branch.routes ?? [branch];
    return ways.some(({ args }) => isJsonObject(args) && args['id'] === id);
  });
}

export function placesWhere(entries: readonly Entry[], isIt: (branch: Branch) => boolean): Place[] {
  const counts = new Map<number, number>();
  const found: Place[] = [];
  for (const entry of entries) {
    if (entry.kind !== 'moved' && entry.kind !== 'plan_grown') continue;
    const { step } = entry;
    for (const branch of branchesIn(entry)) {
      const call = counts.get(step) ?? 0;
      counts.set(step, call + 1);
      if (isIt(branch)) found.push({ step, call, branch });
    }
  }
  return found;
}

/**
 * How often a call with this id came to an error, was called off before it had happened, or somebody said that it had not: whoever makes a
 * plan anew may then make it again.
 */
export function timesFailed(entries: readonly Entry[], { id, tool }: Pick<Attempt, 'id' | 'tool'>): number {
  const outcomes = outcomesOf(entries);
  const isError = ({ step, call, branch }: Place): boolean => {
    const { kind } = outcomes.get(`${step} ${branch.id ?? call}`) ?? {};
    // That none is called off which has happened is a check of its own.
    return kind === 'error' || kind === 'cancelled';
  };
  // The nodes of a flow have no ids in their arguments.
  const places = id.includes('/') ? placesWhere(entries, (branch) => branch.tool === tool) : placesOf(entries, id);
  const denied = deniedIn(entries);
  const isDenied = ({ step, call }: Place): boolean => denied.has(`${step} ${call}`);
  return places.filter((place) => isError(place) || isDenied(place)).length;
}

/** The calls in doubt of which somebody has said that they did not happen, by step and call. */
function deniedIn(entries: readonly Entry[]): ReadonlySet<string> {
  const open = new Map<string, string>();
  const denied = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === 'paused' && entry.reason === 'in_doubt') open.set(entry.token, `${entry.step} ${entry.call}`);
    if (entry.kind !== 'resumed' || entry.verdict !== 'settle' || entry.outcome !== undefined) continue;
    const place = open.get(entry.token);
    if (place !== undefined) denied.add(place);
  }
  return denied;
}

function branchesIn(entry: Extract<Entry, { kind: 'moved' | 'plan_grown' }>): readonly Branch[] {
  if (entry.kind === 'plan_grown') return entry.branches;
  const { decision, rejected, fault } = entry;
  if (rejected !== undefined || (fault !== undefined && entry.growing !== true)) return [];
  if (decision.kind === 'call_parallel') return decision.branches;
  return decision.kind === 'call_tool' ? [{ tool: decision.tool, args: decision.args }] : [];
}

function isSame(left: unknown, right: unknown): boolean {
  // The keys are mostly in the same order.
  return JSON.stringify(left) === JSON.stringify(right) || text(left) === text(right);
}

/** The same text for the same value, in whatever order its keys are. */
function text(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    isJsonObject(part as Json) ? Object.fromEntries(Object.entries(part as JsonObject).sort()) : part,
  );
}
