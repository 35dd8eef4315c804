/** Compares two runs: which steps are the same, where the runs part, and what each has cost. Pure. */
import {
  asJson,
  branchesOf,
  type Decision,
  defined,
  isJsonObject,
  type Json,
  jsonEquals,
  type Outcome,
  oneLine,
  type Step,
} from '#core';
import { sameDecisionJson } from './repetition.ts';
import type { Ending, RunState, RunTotals } from './state.ts';

export interface RunComparison {
  readonly a: RunSummary;
  readonly b: RunSummary;
  /** By index: as many as the longer run has steps. */
  readonly steps: readonly StepPair[];
  /** The runs have the same ending, or neither has one. */
  readonly sameEnding: boolean;
  /** The first step that is not the same in both; the number of steps if only the endings differ. Absent: all is the same. */
  readonly firstDivergence?: number;
}

export interface RunSummary {
  readonly run: string;
  readonly agent: string;
  readonly query: string;
  readonly goal: string;
  /** Usage of all steps, with priced tools and tasks. `costMicroUsd` is in millionths of a US dollar. */
  readonly totals: RunTotals;
  /** `null`: the run has not ended. */
  readonly ending: Ending | null;
}

export interface StepPair {
  readonly index: number;
  readonly verdict: 'same' | 'changed' | 'only_a' | 'only_b';
  /** What differs when it is changed. */
  readonly changes: readonly ('decision' | 'outcome')[];
  readonly a?: StepSummary;
  readonly b?: StepSummary;
}

export interface StepSummary {
  readonly kind: Decision['kind'];
  /** The tools that it calls, in branch order, fit to be shown; none for a decision without calls. */
  readonly tools: readonly string[];
  readonly decision: Decision;
  /** In branch order. */
  readonly outcomes: readonly Outcome[];
  /** The code of the step's own error, if it has one. */
  readonly error?: string;
  /** Tokens of the model that decided; 0 when they are not known. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: number;
}

/** What of a run is compared: a `RunSnapshot` has it, and so has a `RunState`. */
type Compared = Pick<RunState, 'identity' | 'agent' | 'query' | 'goal' | 'ending'> & {
  readonly steps: readonly Step[];
  readonly totals: Readonly<RunTotals>;
};

/** @param a usually the older run, of which `b` is a fork. */
export function compareRuns(a: Compared, b: Compared): RunComparison {
  const neutral = withoutRuns(a.identity.run, b.identity.run);
  const length = Math.max(a.steps.length, b.steps.length);
  const steps = Array.from({ length }, (_, index) => pairOf(index, a.steps[index], b.steps[index], neutral));
  const sameEnding = jsonEquals(neutral(endOf(a.ending)), neutral(endOf(b.ending)));
  const apart = steps.findIndex(({ verdict }) => verdict !== 'same');
  const first = apart !== -1 ? apart : sameEnding ? undefined : length;
  return {
    a: summaryOf(a),
    b: summaryOf(b),
    steps,
    sameEnding,
    ...defined({ firstDivergence: first }),
  };
}

function summaryOf({ identity, agent, query, goal, totals, ending }: Compared): RunSummary {
  return { run: identity.run, agent, query, goal, totals: { ...totals }, ending };
}

function pairOf(index: number, a: Step | undefined, b: Step | undefined, neutral: (json: Json) => Json): StepPair {
  const sides = { ...(a && { a: stepOf(a) }), ...(b && { b: stepOf(b) }) };
  if (a === undefined || b === undefined) {
    return { index, verdict: a === undefined ? 'only_b' : 'only_a', changes: [], ...sides };
  }
  const changes: StepPair['changes'][number][] = [];
  if (!sameDecisionJson(neutral(asJson(a.decision)), neutral(asJson(b.decision)))) changes.push('decision');
  if (!jsonEquals(neutral(cameTo(a)), neutral(cameTo(b)))) changes.push('outcome');
  return { index, verdict: changes.length === 0 ? 'same' : 'changed', changes, ...sides };
}

function stepOf({ decision, calls, error, usage }: Step): StepSummary {
  const { inputTokens = 0, outputTokens = 0, costMicroUsd = 0 } = usage ?? {};
  return {
    kind: decision.kind,
    tools: toolsOf(decision),
    decision,
    outcomes: calls.map(({ outcome }) => outcome),
    ...(error === undefined ? {} : { error: error.code }),
    inputTokens,
    outputTokens,
    costMicroUsd,
  };
}

const MAX_NAME = 60;

/** A decision that did not pass may have any shape. */
function toolsOf(decision: Decision): readonly string[] {
  const branches: unknown = branchesOf(decision);
  if (!Array.isArray(branches)) return [];
  return branches.flatMap((branch: unknown) => {
    const tool = isJsonObject(branch) ? branch['tool'] : undefined;
    return typeof tool === 'string' ? [oneLine(tool, MAX_NAME)] : [];
  });
}

function cameTo({ calls, error }: Step): Json {
  return asJson({ outcomes: calls.map(({ outcome }) => outcome), error: error?.code ?? null });
}

/** Without the metadata, which name the run. */
function endOf(ending: Ending | null): Json {
  if (ending === null) return null;
  if (ending.kind === 'failed') return { kind: ending.kind, code: ending.error.code };
  return { kind: ending.kind, reason: ending.reason, payload: ending.payload ?? null };
}

/** Names a task, or its group, by where it was spawned: their names begin with the run's, and are to be the same in both. */
function withoutRuns(a: string, b: string): (json: Json) => Json {
  const nameOf = (text: string): string => {
    const at = text.startsWith(GROUP) ? GROUP.length : 0;
    const run = [a, b].find((id) => text.startsWith(`${id}.`, at));
    const place = run === undefined ? '' : text.slice(at + run.length);
    return /^(\.\d+){2,}$/.test(place) ? text.slice(0, at) + place : text;
  };
  const neutral = (json: Json): Json => {
    if (typeof json === 'string') return nameOf(json);
    if (Array.isArray(json)) return json.map(neutral);
    if (!isJsonObject(json)) return json;
    return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, neutral(value)]));
  };
  return neutral;
}

/** Begins the name of a group of one task. */
const GROUP = 'group:';
