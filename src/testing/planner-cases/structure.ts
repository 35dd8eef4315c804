/** Properties that hold for every planner, whatever it decides. */
import assert from 'node:assert/strict';
import { type Decision, local, type Planner, resolveWakeMode } from '#core';
import type { RunState } from '#state';
import { runView } from '../run-view.ts';
import {
  assertAsked,
  callNext,
  decidedMove,
  inRuntime,
  lookUp,
  ordinary,
  type PlannerBench,
  type PlannerCase,
  shownError,
  Unsettled,
  until,
  watched,
} from './kit.ts';
import { AFTER, TOOLS } from './views.ts';

const RUNS = 100;

async function decisionKinds(bench: PlannerBench): Promise<void> {
  const made = await bench.make();
  for (const streaming of [false, true]) {
    const when = streaming ? 'asked for a stream' : 'asked without a listener';
    const view = runView({ query: 'What is the weather?', tools: TOOLS, streaming });
    await decidedMove(made.planner, view, when);
  }
  assertAsked(bench, made);
}

async function wakeMode(bench: PlannerBench): Promise<void> {
  const { planner } = await bench.make();
  const { modelDriven = false } = planner;
  assert.equal(modelDriven, bench.capabilities.modelDriven, 'its modelDriven is not what its capabilities say');
  const modes = new Set<string>([modeOf(planner)]);
  for (let run = 0; run < RUNS; run += 1) {
    const view = runView({ identity: local('kit', { run: `run-${run}` }), tools: TOOLS });
    await callNext(planner, view).catch((error: unknown) => {
      // What it decides, or throws, is looked at elsewhere.
      if (error instanceof Unsettled) throw error;
    });
    modes.add(modeOf(planner));
  }
  assert.equal(modes.size, 1, `its wake mode changed between runs: ${[...modes].join(', ')}`);
}

function modeOf(planner: Planner): string {
  try {
    return resolveWakeMode(planner);
  } catch (error) {
    assert.fail(shownError(error));
  }
}

async function closedUnion(bench: PlannerBench): Promise<void> {
  const { planner } = await bench.make();
  for (const { when, view } of AFTER) await decidedMove(planner, view, when);
  await seventhKind((await bench.make()).planner);
}

const SEVENTH = { kind: 'think_harder' } as unknown as Decision;

/** The runtime refuses a seventh kind; a model-driven planner is asked again, with the refused step in its view. */
async function seventhKind(own: Planner): Promise<void> {
  const { planner, asked, check } = watched(own, ({ trajectory }) => (trajectory.count === 0 ? SEVENTH : undefined));
  const state = await inRuntime(planner, [lookUp], async ({ runtime, journal }) => {
    const { id } = await runtime.start('What is the weather?', { identity: local('kit') });
    const isPast = (now: RunState): boolean => now.ending !== null || now.steps.length > 1 || now.pauses.length > 0;
    const what = 'the run did not go on after a decision of a seventh kind';
    return until(journal, id, (now) => (isPast(now) ? now : undefined), what);
  });
  check();
  assert.deepEqual(state.steps[0]?.calls ?? [], [], 'a decision of a seventh kind was carried out');
  if (own.modelDriven === true) {
    assert.ok(asked.length > 0, 'a model-driven planner was not asked again after a decision that was refused');
    return;
  }
  const code = state.ending?.kind === 'failed' ? state.ending.error.code : state.ending?.kind;
  assert.equal(code, 'invalid_decision', 'a decision of a seventh kind did not fail the run');
}

export const structureCases: readonly PlannerCase[] = [
  {
    name: 'decision kinds',
    about: 'each ask gives one decision of the six kinds',
    wants: 'Any decision.',
    script: ordinary,
    run: decisionKinds,
  },
  {
    name: 'wake mode',
    about: 'valid, and the same over 100 runs; one that declares none is push',
    wants: 'Any decision.',
    script: ordinary,
    run: wakeMode,
  },
  {
    name: 'closed union',
    about: 'there is no seventh kind, whatever came before',
    wants: 'Any decision, after steps of every kind that the planner itself may never have decided.',
    script: ordinary,
    run: closedUnion,
  },
];
