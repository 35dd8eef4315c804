/** `pilotage run`. */
import { userInfo } from 'node:os';
import type { ReadyConfig } from '#config/ready';
import { defined, type Limits, local } from '#core';
import { followRun, limitsOf, withRuntime } from './drive.ts';
import type { Options } from './options.ts';
import { findProject, journalOf, type Project, setUpProject, withJournal } from './project.ts';
import { survey } from './survey.ts';
import { type Terminal, UsageError } from './terminal.ts';

/** @returns the exit code. */
export async function runCommand(goal: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  const { agent, input } = options;
  if (agent === undefined && input !== undefined) throw new UsageError('--input goes with --agent.');
  const ready = await setUpProject(options, project, agent === undefined ? {} : { stored: { agent } });
  if (agent === undefined && ready.runtime.planner === survey) terminal.note(NO_MODEL);
  return startRun({ goal, project, ready }, options, terminal);
}

export interface RunRequest {
  readonly goal: string;
  readonly project: Project | undefined;
  readonly ready: ReadyConfig;
  readonly showsPlans?: boolean;
}

/** Starts the run and shows it until it ends or is paused. Returns the exit code. */
export async function startRun(made: RunRequest, options: Options, terminal: Terminal): Promise<number> {
  const { goal, project, ready, showsPlans = false } = made;
  const { hints } = ready;
  return withJournal(journalOf(options, project), (journal) =>
    withRuntime(ready, journal, terminal, async (runtime) => {
      const { session, agent, input } = options;
      const run = await runtime.start(goal, {
        identity: local(userName(), session === undefined ? {} : { session }),
        limits: { ...limitsOf(options), onCeiling: ceilingOf(options, project) },
        conversation: session !== undefined,
        ...defined({ agent }),
        context: defined({ hints, args: input }),
      });
      return followRun(run, 1, { journal, options, terminal, showsPlans });
    }),
  );
}

const NO_MODEL =
  'No model is set up, so a fixed survey of the folder follows; pilotage run --help says how to set one up.';

function ceilingOf({ timeoutMs }: Options, project: Project | undefined): NonNullable<Limits['onCeiling']> {
  if (timeoutMs !== undefined) return 'finish';
  return project?.limits?.onCeiling ?? 'pause';
}

/** In whose name runs are started here. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may give its user no name.
    return 'me';
  }
}
