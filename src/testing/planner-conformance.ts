/**
 * What every planner must do, as plain async functions for any test runner:
 *
 *     const capabilities = { modelDriven: true, canPause: false, wakeRoundTrip: true, honoursCancel: true };
 *     const make = ({ model }) => react({ model });
 *     for (const { name, skip, run } of plannerConformance({ name: 'react', capabilities, make }))
 *       it.skipIf(skip !== undefined)(name, run);
 */
import type { Planner } from '../core/planner.ts';
import { pastDeadline, pausePayloadBounds } from './planner-cases/bounds.ts';
import { concurrentReuse } from './planner-cases/concurrency.ts';
import {
  LOOK_UP,
  type PlannerCapabilities,
  type PlannerCase,
  type PlannerScenario,
  type PlannerScenarioName,
  WORK,
} from './planner-cases/kit.ts';
import { malformedOutput } from './planner-cases/malformed.ts';
import { parallelShape, topPrompts } from './planner-cases/moves.ts';
import { steeringDrain } from './planner-cases/steering.ts';
import { structureCases } from './planner-cases/structure.ts';
import { wakeRoundTrip } from './planner-cases/wake.ts';
import { type ScriptedModel, scriptedModel } from './scripted-model.ts';

export interface PlannerConformanceOptions {
  /** Stands in front of the name of each case. */
  readonly name: string;
  /**
   * A planner as its user would make it, fresh each time. A planner with a model takes `model`, which says what the
   * scenario needs; one without does what `wants` asks for.
   */
  make(scenario: PlannerScenario): Planner | Promise<Planner>;
  readonly capabilities: PlannerCapabilities;
  /** What this planner cannot do beside that, with the reason for each. */
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
];

/** Three checks of a planner's structure and eight scenarios, always eleven cases. */
export function plannerConformance(options: PlannerConformanceOptions): PlannerConformanceCase[] {
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

async function runCase(check: PlannerCase, { capabilities, make }: PlannerConformanceOptions): Promise<void> {
  await check.run({
    capabilities,
    async make(model: ScriptedModel = scriptedModel(check.script)) {
      const { name, wants } = check;
      return { planner: await make({ name, wants, model, tools: { lookUp: LOOK_UP, work: WORK } }), model };
    },
  });
}
