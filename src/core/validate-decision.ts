/** The one gate in front of dispatch: every decision of every planner passes here before anything happens. */
import { linkBranches, orderOf } from './branch-graph.ts';
import { capture } from './capture.ts';
import {
  type AwaitTask,
  type Branch,
  type CallParallel,
  type CallTool,
  DECISION_NAMES,
  type Decision,
  type DecisionKind,
  FINISH_REASONS,
  type Finish,
  type Join,
  PAUSE_REASONS,
  type RequestPause,
  type Route,
  type SpawnSpec,
  type SpawnTask,
} from './decision.ts';
import { PilotageError } from './errors.ts';
import { isJsonObject, type Json, type JsonObject } from './json.ts';
import { assertLimits } from './limits.ts';
import { meantBy, type OptionShape } from './options.ts';
import { plainWord } from './other-words.ts';
import { allReferencesIn, referenceFault, unescaped } from './reference.ts';
import { isTaskTool, taskCall } from './task.ts';
import { isPlanTool } from './tool.ts';

/** At most this many branches in one call. A longer list is refused whole, never cut short. */
export const MAX_BRANCHES = 50;
/** The cap on branches for a call that carries out a plan. */
export const MAX_PLAN_BRANCHES = 10_000;

/**
 * Returns the decision as frozen JSON. It is captured before anything of it is looked at: what was checked is what will run.
 * @throws as `captureDecision` and `checkDecision`.
 */
export function validateDecision(given: Decision): Decision {
  return checkDecision(captureDecision(given));
}

/** The planner's decision as frozen JSON, read exactly once. @throws PilotageError `invalid_decision`. */
export function captureDecision(given: Decision): Decision {
  if (typeof given !== 'object' || given === null) {
    throw invalid(`the planner returned ${given === null ? 'null' : typeof given} in place of a decision`);
  }
  const captured = asDecision(() => capture<Decision>(given, 'decision').json);
  if (isJsonObject(captured)) return captured;
  throw invalid('the planner returned a list or a string in place of a decision');
}

const CALL: OptionShape<CallTool> = {
  ...({ kind: 'any', tool: 'any', args: 'any', callId: 'any?', refusal: 'any?', reuse: 'any?' } as const),
};
const PARALLEL: OptionShape<CallParallel> = {
  ...({ kind: 'any', branches: 'any', join: 'any?', onInvalid: 'any?' } as const),
  ...({ failFast: 'any?', concurrency: 'any?', plan: 'any?' } as const),
};
const SPAWN: OptionShape<SpawnTask> = {
  ...({ kind: 'any', task: 'any', spec: 'any', groupId: 'any?', callId: 'any?' } as const),
};
const AWAIT: OptionShape<AwaitTask> = {
  ...({ kind: 'any', taskId: 'any', groupId: 'any?', timeoutMs: 'any?', callId: 'any?' } as const),
};
const PAUSE: OptionShape<RequestPause> = {
  ...({ kind: 'any', reason: 'any', payload: 'any?', schema: 'any?', expiresInMs: 'any?' } as const),
};
const FINISH: OptionShape<Finish> = {
  ...({ kind: 'any', reason: 'any', payload: 'any?', stored: 'any?', metadata: 'any?', continued: 'any?' } as const),
};
const ROUTE: OptionShape<Route> = { args: 'any', after: 'any?', when: 'any?' };
const BRANCH: OptionShape<Branch> = {
  ...({
    id: 'any?',
    tool: 'any',
    args: 'any',
    callId: 'any?',
    refusal: 'any?',
    after: 'any?',
    behind: 'any?',
  } as const),
  ...({ when: 'any?', routes: 'any?', reuse: 'any?', tolerates: 'any?' } as const),
};
const SPEC: OptionShape<SpawnSpec> = {
  ...({ description: 'any', query: 'any', priority: 'any?', retainTurn: 'any?', onCancel: 'any?' } as const),
  ...({ agent: 'any?', limits: 'any?', seal: 'any?', failFast: 'any?', quorum: 'any?' } as const),
};

/** The fields of each kind. What a planner says in another one would be read by nobody. */
const FIELDS: Readonly<Record<DecisionKind, object>> = {
  call_tool: CALL,
  call_parallel: PARALLEL,
  spawn_task: SPAWN,
  await_task: AWAIT,
  request_pause: PAUSE,
  finish: FINISH,
};

/**
 * @param decision frozen JSON. It is returned itself.
 * @throws PilotageError `invalid_decision`, `parallel_cap_exceeded` or `parallel_invalid_join`.
 */
export function checkDecision(decision: Decision): Decision {
  const fields = Object.hasOwn(FIELDS, decision.kind) ? FIELDS[decision.kind] : undefined;
  if (fields !== undefined) assertFields(decision, fields, decision.kind);
  switch (decision.kind) {
    case 'call_tool':
      validateCall(decision);
      break;
    case 'call_parallel':
      validateParallel(decision);
      break;
    case 'spawn_task':
      requireMember(decision.task, ['foreground', 'background'], 'task');
      if (decision.groupId !== undefined) requireText(decision.groupId, 'groupId');
      optionalText(decision.callId, 'callId');
      validateSpawn(decision.spec);
      if (decision.spec.quorum !== undefined && decision.groupId === undefined) {
        throw invalid('spec.quorum needs a group: give the groupId that the tasks of the group share');
      }
      break;
    case 'await_task':
      requireText(decision.taskId, 'taskId');
      if (decision.groupId !== undefined) requireText(decision.groupId, 'groupId');
      optionalText(decision.callId, 'callId');
      optionalMs(decision.timeoutMs, 'timeoutMs');
      break;
    case 'request_pause':
      requireMember(decision.reason, PAUSE_REASONS, 'reason');
      optionalMs(decision.expiresInMs, 'expiresInMs');
      if (decision.payload !== undefined) validatePausePayload(decision.payload);
      if (decision.schema !== undefined) validatePauseSchema(decision.schema);
      break;
    case 'finish':
      requireMember(decision.reason, FINISH_REASONS, 'reason');
      if (decision.metadata !== undefined && !isJsonObject(decision.metadata))
        throw invalid('metadata must be an object');
      validateStored(decision);
      if ((decision.reason === 'continued') !== (decision.continued !== undefined))
        throw invalid('what a run leaves to its successor is given as continued, with the reason continued');
      break;
    default:
      throw unknownKind(decision);
  }
  return decision;
}

function validatePauseSchema(schema: JsonObject): void {
  if (!isJsonObject(schema)) throw invalid('schema must be a JSON Schema, an object');
  const { type } = schema;
  if (typeof type === 'string' && type !== 'object') {
    const wanted = `{ type: 'object', properties: { answer: ${JSON.stringify(schema)} }, required: ['answer'] }`;
    throw invalid(`schema must be that of an object, since whoever answers a pause gives one. Write ${wanted}`);
  }
}

const THOUGHTS: ReadonlySet<string> = new Set(['reasoning', 'thought', 'thoughts', 'thinking', 'rationale', 'notes']);
const BESIDE_IT = "Thoughts travel beside the decision, in the planner's move: { decision, text, reasoning }";

/** @param of what has the fields, for the message. */
function assertFields(given: object, fields: object, of: string): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(fields, name)) continue;
    const known = Object.keys(fields);
    // The words of `reason` are fixed here, so that nobody means it with a word of their own.
    const meant = meantBy(
      name,
      known.filter((field) => field !== 'reason'),
    );
    if (THOUGHTS.has(plainWord(name))) throw invalid(`${of} has no field ${JSON.stringify(name)}. ${BESIDE_IT}`);
    const what = `${of} has no field ${JSON.stringify(name)}`;
    throw invalid(`${what}. ${meant === undefined ? '' : `${meant.advice} `}Its fields are ${known.join(', ')}`);
  }
}

function validateCall({ tool, args, callId, refusal, reuse }: CallTool): void {
  requireText(tool, 'tool');
  optionalText(callId, 'callId');
  optionalRefusal(refusal, 'refusal');
  optionalTrue(reuse, 'reuse');
  if (args === undefined) throw invalid('args is missing');
}

function validateStored({ stored, payload }: Finish): void {
  if (stored === undefined) return;
  requireMember(String(stored), ['true'], 'stored');
  if (isJsonObject(payload as Json) && typeof (payload as JsonObject)['artifactRef'] === 'string') return;
  throw invalid('stored is true, so payload must be the reference of an artifact: { artifactRef, … }');
}

function validatePausePayload(payload: Json): void {
  if (!isJsonObject(payload)) throw invalid('payload must be a JSON object');
}

function asDecision<T>(check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (PilotageError.is(cause)) throw invalid(cause.message.replace(/\.$/, ''), cause);
    throw cause;
  }
}

function validateParallel(decision: CallParallel): void {
  const given: unknown = decision.branches;
  if (!Array.isArray(given) || given.length === 0) throw invalid('call_parallel has no branches');
  if (decision.plan !== undefined) requireText(decision.plan, 'plan');
  const cap = decision.plan === undefined ? MAX_BRANCHES : MAX_PLAN_BRANCHES;
  if (given.length > cap) {
    throw new PilotageError(
      'parallel_cap_exceeded',
      `A parallel call has ${given.length} branches; the cap is ${cap}. Nothing was started: split the call.`,
      { data: { branches: given.length, cap } },
    );
  }
  const { branches, join, onInvalid, failFast, concurrency, plan } = decision;
  if (onInvalid !== undefined) requireMember(onInvalid, ['fail_all', 'per_branch'], 'onInvalid');
  optionalTrue(failFast, 'failFast');
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency >= 1)) {
    throw invalid(`concurrency is ${concurrency}, and must be a whole number from 1 up`);
  }
  validateJoin(join, branches.length);
  for (const [index, branch] of branches.entries()) validateBranch(branch, `branches[${index}]`, plan !== undefined);
  assertGraph(branches);
}

function validateBranch(branch: Branch, name: string, isOfPlan: boolean): void {
  if (!isJsonObject(branch)) throw invalid(`${name} is not a branch`);
  assertFields(branch, BRANCH, name);
  requireText(branch.tool, `${name}.tool`);
  if (isPlanTool(branch.tool) && !isOfPlan && branch.refusal === undefined) {
    throw invalid(`${name}.tool is ${branch.tool}, which is allowed in the branches of a plan alone`);
  }
  optionalText(branch.id, `${name}.id`);
  optionalText(branch.callId, `${name}.callId`);
  optionalRefusal(branch.refusal, `${name}.refusal`);
  optionalTrue(branch.reuse, `${name}.reuse`);
  const { tolerates } = branch;
  if (tolerates !== undefined && !isIdList(tolerates)) throw invalid(`${name}.tolerates must be a list`);
  for (const kind of tolerates ?? []) requireMember(kind, ['error', 'rejected'], `${name}.tolerates`);
  validateWay(branch, name);
  const { behind } = branch;
  if (behind !== undefined && !isIdList(behind)) throw invalid(`${name}.behind must be a list of branch ids`);
  if (branch.refusal === undefined) validateReferences(branch, name);
  validateRoutes(branch, name);
  // What refers to another branch is known, and checked, only when that branch has ended.
  if (branch.refusal === undefined && isTaskTool(branch.tool) && allReferencesIn(branch.args).length === 0) {
    validateDecision(taskCall(branch.tool, unescaped(branch.args)));
  }
}

function validateRoutes({ tool, args, after, behind, when, routes }: Branch, name: string): void {
  if (routes === undefined) return;
  if (!Array.isArray(routes) || routes.length === 0)
    throw invalid(`${name}.routes must be a list of one route or more`);
  if (args !== null) throw invalid(`${name}.args must be null: each of its routes has arguments of its own`);
  if (after !== undefined || when !== undefined) {
    throw invalid(`${name}.${after === undefined ? 'when' : 'after'} must stand in its routes`);
  }
  if (behind !== undefined) throw invalid(`${name}.behind must be left out of a branch with routes`);
  if (isTaskTool(tool)) throw invalid(`${name} is a call of ${tool}, which cannot have routes`);
  for (const [index, route] of routes.entries()) {
    if (!isJsonObject(route)) throw invalid(`${name}.routes[${index}] is not a route`);
    assertFields(route, ROUTE, `${name}.routes[${index}]`);
    validateWay(route as unknown as Route, `${name}.routes[${index}]`);
    validateReferences(route as unknown as Route, `${name}.routes[${index}]`);
  }
}

/** What a branch and a route have in common. */
function validateWay({ args, after, when }: Route, name: string): void {
  if (args === undefined) throw invalid(`${name}.args is missing`);
  if (after !== undefined && !isIdList(after)) {
    throw invalid(`${name}.after must be a list of branch ids`);
  }
  if (when === undefined) return;
  if (!isJsonObject(when) || when.equals === undefined) throw invalid(`${name}.when must be { branch, equals }`);
  requireText(when.branch, `${name}.when.branch`);
}

function isIdList(ids: unknown): boolean {
  return Array.isArray(ids) && ids.every((id) => typeof id === 'string');
}

function validateReferences({ args }: Route, name: string): void {
  const fault = referenceFault(args);
  if (fault !== undefined) throw invalid(`${name}.args: ${fault}`);
}

function assertGraph(branches: readonly Branch[]): void {
  const { needs } = linkBranches(branches);
  const order = orderOf(needs);
  if (order.length === needs.length) return;
  const placed = new Set(order);
  const stuck = [...needs.keys()].filter((index) => !placed.has(index));
  const more = stuck.length > MAX_NAMED ? ` and ${stuck.length - MAX_NAMED} more` : '';
  throw invalid(`branches ${stuck.slice(0, MAX_NAMED).join(', ')}${more} wait for each other in a cycle`);
}

/** How many branches are named in a message. */
const MAX_NAMED = 50;

function validateJoin(join: Join | undefined, branches: number): void {
  if (join === undefined) return;
  if (!isJsonObject(join)) throw badJoin("the join must be an object, such as { kind: 'first_success' }");
  // An empty kind is a missing one (behaviour PX-02).
  const kind: string = join.kind;
  if (kind === '' || kind === 'all' || kind === 'first_success') return;
  if (join.kind === 'n') {
    if (Number.isInteger(join.n) && join.n >= 1 && join.n <= branches) return;
    throw badJoin(`n is ${join.n}, and must be a whole number from 1 to ${branches}`);
  }
  if (join.kind === 'keyed') {
    if (!Array.isArray(join.keys) || join.keys.length !== branches) {
      throw badJoin(`keyed names ${join.keys?.length ?? 0} keys for ${branches} branches; name one key for each`);
    }
    if (join.keys.some((key) => typeof key !== 'string' || key === '')) throw badJoin('keyed has an empty key');
    if (new Set(join.keys).size !== branches) throw badJoin('keyed names the same key twice');
    return;
  }
  throw badJoin(`kind is ${shown(kind)}, and must be one of all, first_success, n, keyed`);
}

function validateSpawn(spec: SpawnSpec): void {
  if (!isJsonObject(spec)) throw invalid('spawn_task has no spec: give { description, query }');
  assertFields(spec, SPEC, 'spec');
  requireText(spec.query, 'spec.query');
  for (const name of ['retainTurn', 'seal', 'failFast'] as const) {
    if (spec[name] !== undefined && typeof spec[name] !== 'boolean')
      throw invalid(`spec.${name} must be true or false`);
  }
  const { agent, priority, onCancel, limits, quorum } = spec;
  if (agent !== undefined) requireText(agent, 'spec.agent');
  if (priority !== undefined && !(Number.isInteger(priority) && Math.abs(priority) <= 1000)) {
    throw invalid(`spec.priority is ${priority}, and must be a whole number from -1000 to 1000`);
  }
  if (onCancel !== undefined) requireMember(onCancel, ['cascade', 'isolate'], 'spec.onCancel');
  if (quorum !== undefined && !(Number.isInteger(quorum) && quorum >= 1)) {
    throw invalid(`spec.quorum is ${quorum}, and must be a whole number from 1 up`);
  }
  if (typeof spec.description !== 'string') throw invalid('spec.description must be a string');
  if (limits === undefined) return;
  if (!isJsonObject(limits)) throw invalid('spec.limits must be an object');
  asDecision(() => assertLimits(limits));
}

function requireText(value: unknown, name: string): void {
  if (typeof value !== 'string' || value === '') throw invalid(`${name} must be a non-empty string`);
}

function optionalText(value: unknown, name: string): void {
  if (value !== undefined && typeof value !== 'string') throw invalid(`${name} must be a string`);
}

function optionalRefusal(value: unknown, name: string): void {
  if (value === undefined) return;
  if (isJsonObject(value) && typeof value['code'] === 'string' && typeof value['message'] === 'string') return;
  throw invalid(`${name} must be { code, message }`);
}

function optionalTrue(value: unknown, name: string): void {
  if (value !== undefined && value !== true) throw invalid(`${name} must be true, or be left out`);
}

function optionalMs(value: unknown, name: string): void {
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value) && value >= 0)) return;
  throw invalid(`${name} must be a number of milliseconds from 0 up`);
}

function requireMember(value: string, members: readonly string[], name: string): void {
  if (!members.includes(value)) throw invalid(`${name} is ${shown(value)}, and must be one of ${members.join(', ')}`);
}

/** A word as it is; of anything else only the type. */
function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : `a value of the type ${typeof value}`;
}

function invalid(what: string, cause?: unknown): PilotageError {
  return new PilotageError('invalid_decision', `The planner's decision is invalid: ${what}.`, { cause });
}

function badJoin(what: string): PilotageError {
  return new PilotageError('parallel_invalid_join', `The join of a parallel call is invalid: ${what}.`);
}

function unknownKind(decision: never): PilotageError {
  const { kind } = decision as { kind?: unknown };
  return invalid(`kind is ${shown(kind)}, and must be one of ${Object.keys(DECISION_NAMES).join(', ')}`);
}

/**
 * Reads a decision back from a journal.
 * @throws PilotageError `unknown_decision_kind` naming the kind.
 */
export function readDecision(value: Json): Decision {
  const kind = isJsonObject(value) ? value['kind'] : undefined;
  if (typeof kind === 'string' && KINDS.has(kind)) return value as JsonObject as unknown as Decision;
  throw new PilotageError(
    'unknown_decision_kind',
    `The journal holds a decision of the unknown kind ${JSON.stringify(kind)}; a newer version of Pilotage may have written it.`,
  );
}

const KINDS: ReadonlySet<string> = new Set([
  'call_tool',
  'call_parallel',
  'spawn_task',
  'await_task',
  'request_pause',
  'finish',
]);
