/** A planner of rules: in an ordered list, the first rule that matches and has a step decides. */
import {
  assertIdentity,
  assertKnownKeys,
  assertOptions,
  describeThrown,
  type JsonObject,
  type Move,
  type OptionShape,
  PilotageError,
  type Planner,
  type RunView,
} from '#core';
import { type PlannerState, type PlanStep, plannerState, stepMove } from '#plans';

export interface Rule {
  /** Unique among the rules, and named in errors. */
  readonly id: string;
  match(state: PlannerState, run: RunView): boolean | Promise<boolean>;
  /** The step of the rule; `null` passes on to the next rule. */
  toPlanStep(state: PlannerState, run: RunView): PlanStep | null | Promise<PlanStep | null>;
}

export interface RulesOptions {
  /** The planner's name. Default `rules`. */
  readonly name?: string;
  /** Recorded with each run. Change it when runs that were started with other rules must not go on with these rules unasked. */
  readonly version?: string;
  /** The rules, asked in order for each step of the run. When no rule has a step, the run ends with `no_path`. */
  readonly rules: readonly Rule[];
  /** The tool that carries out `internal` steps, called with `{ id, input, meta }`. Default: plans have no internal steps. */
  readonly internal?: string;
}

export interface RulePlanner extends Planner {
  /** In the order in which they are asked. */
  getRules(): readonly Rule[];
}

const RULE: OptionShape<Rule> = { id: 'any', match: 'any', toPlanStep: 'any' };
const OPTIONS: OptionShape<RulesOptions> = { name: 'any?', version: 'any?', rules: 'any', internal: 'any?' };

/**
 * A rule that throws, or whose step cannot be carried out, fails the run with `rule_failed`, which names it.
 * @throws PilotageError `invalid_config` when there are no rules, when two have the same id, and for a value that is not a rule.
 */
export function rules(options: RulesOptions): RulePlanner {
  assertOptions('rules', options, OPTIONS);
  const { name = 'rules', version, internal } = options;
  assertText(name, 'The name of a planner');
  if (version !== undefined && typeof version !== 'string')
    throw misconfigured('The version of a planner must be a string.');
  if (internal !== undefined) assertText(internal, 'internal');
  const ordered = readyRules(options.rules);
  const how = internal === undefined ? {} : { internal };
  const planner: RulePlanner = {
    name,
    wakeMode: 'poll',
    whileAsked: 'keep',
    next: (run, signal) => firstMatch(ordered, how, run, signal),
    getRules: () => ordered,
  };
  return Object.freeze(version === undefined ? planner : { ...planner, version });
}

interface How {
  readonly internal?: string;
}

async function firstMatch(ordered: readonly Rule[], how: How, run: RunView, signal: AbortSignal): Promise<Move> {
  signal.throwIfAborted();
  const { identity, controls } = run;
  assertIdentity(identity);
  if (controls.some(({ type }) => type === 'CANCEL')) return { decision: { kind: 'finish', reason: 'cancelled' } };
  const state = plannerState(run);
  for (const rule of ordered) {
    const move = await ask(rule, state, how, run, signal);
    if (move !== undefined) return move;
  }
  return { decision: { kind: 'finish', reason: 'no_path', metadata: { rules: 'no_rule_matched' } } };
}

async function ask(
  rule: Rule,
  state: PlannerState,
  how: How,
  run: RunView,
  signal: AbortSignal,
): Promise<Move | undefined> {
  const { id } = rule;
  try {
    if (!(await rule.match(state, run))) return undefined;
    const step = await rule.toPlanStep(state, run);
    if (step === null) return undefined;
    const { decision, provenance } = await stepMove(step, how, run, signal, 'rules');
    return { decision, provenance: { ...provenance, rule: id } };
  } catch (cause) {
    signal.throwIfAborted();
    const data: JsonObject = { rule: id, ...(PilotageError.is(cause) ? { cause: cause.code, ...cause.data } : {}) };
    throw new PilotageError('rule_failed', `The rule ${JSON.stringify(id)} failed: ${describeThrown(cause)}`, {
      data,
      cause,
    });
  }
}

function readyRules(given: readonly Rule[]): readonly Rule[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw misconfigured('A planner of rules needs a list of rules, with at least one.');
  }
  const seen = new Map<string, number>();
  // Array.from sees holes too.
  for (const [index, rule] of Array.from(given as readonly (Rule | undefined)[]).entries()) {
    const name = `rules[${index}]`;
    if (typeof rule !== 'object' || rule === null)
      throw misconfigured(`${name} must be an object, { id, match, toPlanStep }.`);
    assertKnownKeys(name, rule, Object.keys(RULE));
    assertText(rule.id, `${name}.id`);
    if (typeof rule.match !== 'function') throw misconfigured(`${name}.match must be a function.`);
    if (typeof rule.toPlanStep !== 'function') throw misconfigured(`${name}.toPlanStep must be a function.`);
    const other = seen.get(rule.id);
    if (other !== undefined) {
      throw misconfigured(`rules[${other}] and ${name} have the same id, ${rule.id}. Give each an id of its own.`);
    }
    seen.set(rule.id, index);
  }
  return Object.freeze([...given]);
}

function assertText(value: unknown, name: string): void {
  if (typeof value !== 'string' || value.trim() === '') throw misconfigured(`${name} must be a non-empty string.`);
}

function misconfigured(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
