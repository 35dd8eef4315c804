/** Runs a list of decisions on a memory journal, and gives back everything that was recorded and told. */

import { defined } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, type Identity, local, type Planner, type RunEvent, type RunResult } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Decision, Move, RunView } from '#pilotage/planner';
import type { Entry } from '#pilotage/state';
import type { RuntimeOptions, StartOptions } from '#runtime';
import type { ToolSet } from '#tools';

export type Script = readonly (Decision | Move | ((run: RunView) => Decision | Move))[];

export interface RecordOptions extends Partial<Omit<RuntimeOptions, 'planner' | 'tools' | 'journal'>> {
  readonly tools?: ToolSet;
  readonly identity?: Identity;
  readonly scopes?: readonly string[];
  readonly query?: string;
  readonly modelDriven?: boolean;
  readonly compact?: NonNullable<Planner['compact']>;
  readonly remembers?: NonNullable<Planner['remembers']>;
  readonly start?: Partial<StartOptions>;
  readonly journal?: Journal;
}

export interface Recorded {
  readonly result: RunResult;
  readonly entries: readonly Entry[];
  readonly events: readonly RunEvent[];
  /** What the planner was given, a view for each time it was asked. */
  readonly views: readonly RunView[];
}

/** A planner that gives the decision at the index of the step; after the last one it finishes. */
export function scripted(script: Script, views: RunView[] = [], modelDriven = false): Planner {
  return {
    name: 'scripted',
    modelDriven,
    next: (run) => {
      views.push(run);
      const made = script[run.trajectory.count] ?? { kind: 'finish', reason: 'goal', payload: 'done' };
      return typeof made === 'function' ? made(run) : made;
    },
  };
}

export async function record(script: Script, options: RecordOptions = {}): Promise<Recorded> {
  const { identity = local('ana'), query = 'q', tools = [], scopes = [], ...others } = options;
  const { modelDriven, compact, remembers, start, ...rest } = others;
  const views: RunView[] = [];
  const journal = rest.journal ?? memoryJournal();
  const plain = scripted(script, views, modelDriven);
  const planner = { ...plain, ...defined({ compact, remembers }) };
  const runtime = createRuntime({ ...rest, planner, tools, journal });
  try {
    const run = await runtime.start(query, { identity, scopes, ...start });
    const events: RunEvent[] = [];
    for await (const event of run.events()) events.push(event);
    return { result: await run.result(), entries: await journal.read(run.id), events, views };
  } finally {
    await runtime.close();
  }
}
