/** The agentsdk contract for makers of plans, and the way from it to ours: what a maker is told of a run, and what it may give. */
import {
  defined,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonText,
  MESSAGE_TOOL,
  observeBranches,
  type RunView,
  type SteeringTurn,
  type Step,
  wordsIn,
} from '#core';
import { stepsInOrder } from './check-plan.ts';
import type { Plan, PlanStep } from './plan.ts';

/** The view of a run for a planner of the agentsdk contract. */
export interface PlannerState {
  readonly sessionId: string;
  readonly transcript: readonly { readonly role: 'user' | 'agent' | 'tool'; readonly text: string }[];
  readonly memorySnapshot?: Json;
  readonly goal?: string;
  readonly stepCount: number;
  /** `costCeiling` in millionths of a US dollar. */
  readonly limits?: { readonly maxSteps?: number; readonly costCeiling?: number };
}

/** A maker of plans: returns a whole plan, or the next step alone. */
export interface PlanMaker {
  plan(state: PlannerState): Promise<Plan | PlanStep> | Plan | PlanStep;
}

export type PlanYield =
  | PlanStep
  | { readonly partialReasoning: string }
  | { readonly finish: { readonly result?: Json } };

export interface StreamingPlanMaker {
  plan(state: PlannerState): AsyncIterable<PlanYield>;
}

/** Everything that a maker may return. */
export type PlanSource = Plan | PlanStep | Promise<Plan | PlanStep> | AsyncIterable<PlanYield>;

/**
 * Brings every form into one. A plan becomes its steps, each after those that come before it, and then the end; a step stays that step; a
 * stream as it is. The stream of a promise that rejects throws the same when it is read, and that of a plan without an
 * order PilotageError `plan_invalid`.
 */
export function toYields(source: PlanSource): AsyncIterable<PlanYield> {
  if (isStream(source)) return source;
  const made = Promise.resolve(source);
  // It may be read later; until then its rejection is not one that nobody handles.
  made.catch(() => {});
  return yieldsOf(made);
}

async function* yieldsOf(source: Promise<Plan | PlanStep>): AsyncGenerator<PlanYield, void, undefined> {
  const made = await source;
  if (isStep(made)) {
    yield made;
    return;
  }
  const steps = stepsInOrder(made);
  yield* steps;
  // A finish of the plan's own is its end, unless a condition may pass it over.
  if (steps.some(({ type, when }) => type === 'finish' && when === undefined)) return;
  yield { finish: {} };
}

export function isStream(source: unknown): source is AsyncIterable<PlanYield> {
  return typeof source === 'object' && source !== null && Symbol.asyncIterator in source;
}

/** A plan has no type, and a step no steps. */
export function isStep(made: Plan | PlanStep): made is PlanStep {
  return isJsonObject(made) && 'type' in made && !('steps' in made) && !('nodes' in made);
}

export function plannerState(run: RunView): PlannerState {
  const { identity, goal, trajectory, budget } = run;
  const memory = memoryOf(run);
  const { costMicroUsdLeft } = budget;
  return {
    sessionId: identity.session,
    transcript: transcriptOf(run),
    ...defined({ memorySnapshot: memory }),
    goal,
    stepCount: trajectory.count,
    limits: {
      maxSteps: trajectory.count + budget.stepsLeft,
      ...(costMicroUsdLeft === undefined ? {} : { costCeiling: budget.costMicroUsdSpent + costMicroUsdLeft }),
    },
  };
}

function memoryOf({ context: { externalMemory, conversationMemory } }: RunView): JsonObject | undefined {
  if (externalMemory === undefined && conversationMemory === undefined) return undefined;
  return defined({ external: externalMemory, conversation: conversationMemory });
}

type Turn = PlannerState['transcript'][number];

function transcriptOf({ history, query, trajectory }: RunView): readonly Turn[] {
  const turns = history.flatMap(earlierTurns);
  turns.push({ role: 'user', text: query });
  const steering = Map.groupBy(trajectory.steering, ({ atStep }) => atStep);
  for (let index = 0; index <= trajectory.count; index += 1) {
    for (const said of steering.get(index) ?? []) turns.push({ role: 'user', text: wordsOf(said) });
    const step = trajectory.step(index);
    if (step !== undefined) turns.push(...turnsOf(step));
  }
  return turns;
}

/** What the program says in a system turn is said to the planner as the user's words are. */
function earlierTurns({ role, text, parts = [] }: RunView['history'][number]): Turn[] {
  const said: Turn[] = text === '' ? [] : [{ role: role === 'assistant' ? 'agent' : 'user', text }];
  const calls = parts.flatMap((part): Turn[] => {
    if (part.type === 'tool-call') return [{ role: 'agent', text: `${part.toolName} ${jsonText(part.input)}` }];
    if (part.type !== 'tool-result') return [];
    const { output } = part;
    const value = output.type === 'execution-denied' ? { denied: output.reason ?? true } : output.value;
    return [{ role: 'tool', text: `${part.toolName}: ${jsonText(value)}` }];
  });
  return [...said, ...calls];
}

function wordsOf({ control: { type, payload = {} } }: SteeringTurn): string {
  if (type === 'USER_MESSAGE') return wordsIn(payload);
  return type === 'REDIRECT' ? `The goal is now: ${jsonText(payload['goal'] ?? '')}` : jsonText(payload);
}

function turnsOf(step: Step): Turn[] {
  const said: Turn[] = step.text === undefined ? [] : [{ role: 'agent', text: step.text }];
  const results = observeBranches(step).map((seen): Turn => {
    const value = jsonText('value' in seen ? seen.value : { error: seen.error });
    return seen.tool === MESSAGE_TOOL
      ? { role: 'agent', text: value }
      : { role: 'tool', text: `${seen.tool}: ${value}` };
  });
  return [...said, ...results];
}
