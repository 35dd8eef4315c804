/** Brings about the errors of flows and of planners beside the main one, for the table of consequences. */
import { type Flow, type FlowBudget, flow, joinK, mapConcurrent, node, predicateRouter } from '#flow';
import { flowFrom } from '#flow/document';
import { memoryJournal } from '#journal';
import { createRuntime, local, type RunResult, type Runtime } from '#pilotage';
import { finish } from '#planners/finish';
import { withoutPackage } from '../kit/missing-package.ts';

const NUMBER = { type: 'number' } as const;
const identity = (): ReturnType<typeof local> => local('ana');

type Numbers = Flow<number, unknown>;

/** A flow of one node. */
const single = (run: (value: number) => unknown, more: object = {}, budget: FlowBudget = {}): Numbers => {
  const only = node('only', { effect: 'read', execute: run, ...more });
  return flow({ name: 'single', inputSchema: NUMBER, budget, entry: only, exit: only }) as Numbers;
};

const unrouted = (): Numbers => {
  const target = node('target', { effect: 'pure', execute: (value: number) => value });
  const router = predicateRouter({ branches: [{ when: () => false, to: target }] }).asNode('router');
  return flow({ name: 'unrouted', inputSchema: NUMBER, entry: router, exit: target }) as Numbers;
};

function runtimeOf(made: Numbers): Runtime {
  return createRuntime({ planner: finish(), agents: [made], journal: memoryJournal() });
}

async function resultOf(made: Numbers): Promise<RunResult> {
  const runtime = runtimeOf(made);
  try {
    return await (await made.start(runtime, 1, { identity: identity() })).result();
  } finally {
    await runtime.close();
  }
}

async function outputOf(made: Numbers, runtime: Runtime = runtimeOf(made)): Promise<unknown> {
  try {
    return await made.run(runtime, 1, { identity: identity() });
  } finally {
    await runtime.close();
  }
}

type FailingCode = 'route_not_found' | 'node_timeout' | 'node_exception' | 'validation_failed' | 'flow_budget_exceeded';

/** What ends the run of a flow, by the code that it ends with. */
export const FAILING_FLOWS: Readonly<Record<FailingCode, () => Promise<RunResult>>> = {
  route_not_found: () => resultOf(unrouted()),
  node_timeout: () => resultOf(single(() => new Promise(() => {}), { policy: { timeoutMs: 1 } })),
  node_exception: () =>
    resultOf(
      single(() => {
        throw new Error('no');
      }),
    ),
  validation_failed: () => resultOf(single(() => 'text', { outputSchema: NUMBER })),
  flow_budget_exceeded: () => resultOf(single((value) => value, { costUsd: 0.000002 }, { costUsd: 0.000001 })),
};

type ThrowingCode =
  | 'agent_unknown'
  | 'flow_invalid'
  | 'package_missing'
  | 'run_paused'
  | 'run_cancelled'
  | 'invalid_concurrency'
  | 'invalid_k'
  | 'join_k_short_read';

/** What whoever called gets thrown, by its code. */
export const THROWING_FLOWS: Readonly<Record<ThrowingCode, () => unknown>> = {
  agent_unknown: () => outputOf(single(Number), createRuntime({ planner: finish(), journal: memoryJournal() })),
  flow_invalid: () => flowFrom('{}', { functions: {} }),
  package_missing: () => withoutPackage('yaml', () => flowFrom('{}', { functions: {} })),
  run_paused: () => outputOf(single(Number, { needsApproval: true })),
  run_cancelled: async () => {
    const made = single((value) => value, { needsApproval: true });
    const runtime = runtimeOf(made);
    const mine = identity();
    await (await made.start(runtime, 1, { identity: mine })).cancel();
    try {
      return await made.run(runtime, 1, { identity: mine });
    } finally {
      await runtime.close();
    }
  },
  invalid_concurrency: () => mapConcurrent([], 0, Number),
  invalid_k: () => joinK([], 0),
  join_k_short_read: () => joinK([], 1),
};
