/** Whether a recorded run can go on with today's planner and tools. */
import { defined, PilotageError, type Repinned } from '#core';
import { presentName, type RunState } from '#state';
import type { AuthorisedTools } from '#tools';
import type { ReadyAgent } from '../loop/driver-deps.ts';
import { pinOf } from '../tasks/spawn.ts';

/** What differs from what the run was started with. */
export interface RunChange {
  /** `agent`, `planner version`, or `tool <name>`. */
  readonly what: string;
  readonly was: string;
  /** Absent: it is not there any more. */
  readonly now?: string;
}

export interface Migration {
  /** New names of tools, by the names that the run's recorded calls use. */
  readonly renamedTools?: Readonly<Record<string, string>>;
}

/** Decides about a run whose agent has changed: go on, perhaps with tools renamed, or `undefined`: leave it. */
export type Migrate = (run: {
  readonly state: RunState;
  readonly changes: readonly RunChange[];
}) => Migration | undefined | Promise<Migration | undefined>;

export function changesOf(
  state: RunState,
  { agent, planner }: Pick<ReadyAgent, 'agent' | 'planner'>,
  tools: AuthorisedTools,
): readonly RunChange[] {
  const { pin } = state;
  if (pin === null) return [];
  const changes: RunChange[] = [];
  if (state.agent !== agent) changes.push({ what: 'agent', was: state.agent, now: agent });
  else if (pin.version !== planner.version) {
    changes.push({ what: 'planner version', was: pin.version ?? 'none', now: planner.version ?? 'none' });
  }
  const digests = tools.digests();
  for (const [name, was] of Object.entries(pin.tools)) {
    const now = digests[presentName(state, name)];
    if (now === undefined) changes.push({ what: `tool ${name}`, was });
    else if (now !== was) changes.push({ what: `tool ${name}`, was, now });
  }
  return changes;
}

export function runChanged(run: string, changes: readonly RunChange[]): PilotageError {
  const named = changes.map(({ what, was, now }) =>
    now === undefined ? `${what} is gone` : `${what}: ${was} → ${now}`,
  );
  return new PilotageError(
    'run_changed',
    `The run ${run} was started with other code: ${named.join('; ')}. Resume it with acceptChanges, or give the runtime a migrate hook.`,
    { data: { run, changes: changes.map((change) => ({ ...change })) } },
  );
}

export function repinned(
  { agent, planner }: Pick<ReadyAgent, 'agent' | 'planner'>,
  tools: AuthorisedTools,
  { renamedTools }: Migration,
): Repinned {
  return {
    kind: 'repinned',
    agent,
    pin: pinOf(planner, tools),
    ...defined({ renamedTools }),
  };
}
