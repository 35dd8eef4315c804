/** A runtime on a journal in memory and a clock that stands still. */
import { type Identity, local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type Run, type Runtime, type RuntimeOptions, type StartOptions } from '#runtime';
import { VirtualClock } from '#testing';
import { call, script, watched } from './decisions.ts';
import { echo, holding } from './tools.ts';

export interface World {
  readonly runtime: Runtime;
  readonly journal: Journal;
  readonly clock: VirtualClock;
  /** What was told to `onFault`. */
  readonly faults: unknown[];
}

export type WorldOptions = Omit<RuntimeOptions, 'journal' | 'clock' | 'onFault'> & {
  readonly journal?: Journal;
  readonly clock?: VirtualClock;
};

export function world(options: WorldOptions): World {
  const clock = options.clock ?? new VirtualClock();
  const journal = options.journal ?? memoryJournal({ clock });
  const faults: unknown[] = [];
  const room = { maxLiveRuns: 1_000, maxLiveRunsPerTenant: 1_000 };
  // Scripts are functions of all kinds of names; to the journal they are one agent.
  const { planner: given } = options;
  const planner = typeof given === 'function' ? { name: 'function', next: given } : given;
  const runtime = createRuntime({
    ...room,
    ...options,
    ...(planner === undefined ? {} : { planner }),
    journal,
    clock,
    onFault: (error) => faults.push(error),
  });
  return { runtime, journal, clock, faults };
}

/** Starts a run of the user `ana`. */
export function start(
  { runtime }: { readonly runtime: Runtime },
  options: Partial<Omit<StartOptions, 'identity'>> & { identity?: Identity; query?: string } = {},
): Promise<Run> {
  const { query = 'q', identity = local('ana'), ...rest } = options;
  return runtime.start(query, { identity, ...rest });
}

export interface Busy extends World {
  readonly run: Run;
  readonly planner: ReturnType<typeof watched>;
  /** Lets the first call end. */
  go(): void;
}

/** A run that is inside its first tool call until `go`. */
export async function busy(): Promise<Busy> {
  const { tool, entered, release } = holding();
  const planner = watched(script(call('hold'), call('echo')));
  const made = world({ planner, tools: [echo, tool] });
  const run = await start(made);
  await entered;
  return { run, planner, go: release, ...made };
}
