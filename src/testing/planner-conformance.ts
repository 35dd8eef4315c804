/**
 * What every planner must do, as plain async functions for any test runner:
 *
 *     const capabilities = { modelDriven: true, canPause: false, wakeRoundTrip: true, honoursCancel: true };
 *     const make = ({ model }) => react({ model });
 *     for (const { name, skip, run } of plannerConformance({ name: 'react', capabilities, make }))
 *       it.skipIf(skip !== undefined)(name, run);
 */
import { asPlanner, assertKnownKeys, assertOptions, type OptionShape, type Planner, type PlannerFunction } from '#core';
import { type ScriptedModel, scriptedModel } from './models.ts';
import { concurrentReuse, pastDeadline, pausePayloadBounds } from './planner-cases/bounds.ts';
import {
  BOUND_MS,
  bound,
  caseFailure,
  LOOK_UP,
  type PlannerCapabilities,
  type PlannerCase,
  type PlannerScenario,
  type PlannerScenarioName,
  shownError,
  WORK,
} from './planner-cases/kit.ts';
import { malformedOutput, parallelShape, topPrompts } from './planner-cases/replies.ts';
import { steeringDrain, wakeRoundTrip } from './planner-cases/steering.ts';
import { structureCases } from './planner-cases/structure.ts';
import { traceCases } from './planner-cases/traces.ts';

export interface PlannerConformanceOptions {
  /** The prefix of each case's name. */
  readonly name: string;
  /**
   * A planner as its user would make it, fresh each time: an object, or a plain function. A planner with a model takes `model`,
   * which says what the scenario needs; a planner without a model does what `wants` asks for.
   */
  make(scenario: PlannerScenario): Planner | PlannerFunction | Promise<Planner | PlannerFunction>;
  readonly capabilities: PlannerCapabilities;
  /**
   * The longest wait for one decision, and for the result of a run of the kit, in milliseconds. A planner that takes longer fails the
   * case. Default 10,000.
   */
  readonly timeoutMs?: number;
  /** Further cases that this planner cannot pass, with the reason for each. */
  readonly skip?: Readonly<Partial<Record<PlannerScenarioName, string>>>;
}

export interface PlannerConformanceCase {
  readonly name: string;
  readonly scenario: PlannerScenarioName;
  /** Why the planner cannot do this; `run` then rejects. Tell your test runner to skip the case. */
  readonly skip?: string;
  /** Rejects with an `AssertionError` when the planner does not conform. */
  readonly run: () => Promise<void>;
}

const CASES: readonly PlannerCase[] = [
  ...structureCases,
  topPrompts,
  malformedOutput,
  parallelShape,
  wakeRoundTrip,
  pastDeadline,
  pausePayloadBounds,
  steeringDrain,
  concurrentReuse,
  ...traceCases,
];

const OPTIONS: OptionShape<PlannerConformanceOptions> = {
  ...({ name: 'text', make: 'function', capabilities: 'object', timeoutMs: 'count?', skip: 'object?' } as const),
};
const CAPABILITIES: OptionShape<PlannerCapabilities> = {
  ...({ modelDriven: 'any', canPause: 'any', wakeRoundTrip: 'any', honoursCancel: 'any' } as const),
};

/** A case waits for some decisions and runs, one after the other. */
const WAITS_IN_A_CASE = 6;

/** Three checks of a planner's structure, eight scenarios, and three checks of what it leaves behind: always fourteen cases. */
export function plannerConformance(options: PlannerConformanceOptions): PlannerConformanceCase[] {
  assertOptions('plannerConformance', options, OPTIONS);
  assertKnownKeys('capabilities of plannerConformance', options.capabilities, Object.keys(CAPABILITIES));
  return CASES.map((check) => {
    const name = `${options.name}: ${check.name}, ${check.about}`;
    const skip = reasonToSkip(check, options);
    if (skip === undefined) return { name, scenario: check.name, run: () => runCase(check, options) };
    const run = (): Promise<void> => Promise.reject(new Error(`${name}: skipped, for ${skip}`));
    return { name, scenario: check.name, skip, run };
  });
}

function reasonToSkip({ name, needs }: PlannerCase, options: PlannerConformanceOptions): string | undefined {
  if (needs !== undefined && !options.capabilities[needs.capability]) return needs.without;
  return options.skip?.[name];
}

async function runCase(check: PlannerCase, options: PlannerConformanceOptions): Promise<void> {
  const { capabilities, timeoutMs = BOUND_MS } = options;
  const played = bound.run(timeoutMs, () =>
    check.run({
      capabilities,
      async make(model: ScriptedModel = scriptedModel(check.script)) {
        const { name, wants } = check;
        const made = await options.make({ name, wants, model, tools: { lookUp: LOOK_UP, work: WORK } });
        return { planner: plannerOf(made), model };
      },
    }),
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const ms = timeoutMs * WAITS_IN_A_CASE;
    timer = setTimeout(() => reject(caseFailure(`${check.name}: not over after ${ms / 1_000} s`)), ms);
  });
  await Promise.race([played, late]).finally(() => clearTimeout(timer));
}

function plannerOf(made: Planner | PlannerFunction): Planner {
  try {
    return asPlanner(made);
  } catch (error) {
    throw caseFailure(shownError(error), error);
  }
}
