/** `pilotage run`, and what `pilotage plan` needs of it. */
import type { ReadyConfig } from '#config/ready';
import { defined, local } from '#core';
import type { SessionOptions } from '#runtime';
import { type Following, followRun, limitsOf, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { findProject, journalOf, type Project, setUpProject, userName, whenFree, withJournal } from './project.ts';
import { sendAndFollow } from './send-message.ts';
import { survey } from './survey.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { terminalJson } from './text.ts';

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

/** Starts the run, or sends the message, and shows it until it ends or is paused. Returns the exit code. */
export async function startRun(made: RunRequest, options: Options, terminal: Terminal): Promise<number> {
  const { goal, project, ready, showsPlans = false } = made;
  return withJournal(journalOf(options, project), (journal) =>
    withRuntime(ready, journal, terminal, async (runtime) => {
      const started = startedWith(ready, project, options);
      const following: Following = { runtime, journal, options, terminal, showsPlans };
      if (options.session !== undefined && options.startsAt !== undefined) {
        throw new UsageError(
          '--at is for runs, and not for messages of a session: leave --session out, or put a schedule.',
        );
      }
      if (options.session !== undefined) return sendAndFollow(goal, { name: options.session, started }, following);
      if (options.busy !== undefined || options.id !== undefined) {
        throw new UsageError('--busy and --id are for messages of a session: give --session.');
      }
      const identity = local(userName());
      const { startsAt: at } = options;
      const begin = { ...started, identity, conversation: false, ...defined({ at }) };
      const run = await whenFree(terminal, () => runtime.start(goal, begin));
      if (at !== undefined && at > Date.now()) {
        const text = `${run.id}  begins ${new Date(at).toISOString()}`;
        terminal.write(`${options.json ? terminalJson({ run: run.id, startsAt: at }) : text}\n`);
        terminal.note('A process that takes over due runs begins it then: runtime.work(), or pilotage resume.');
        return EXIT.goal;
      }
      return followRun(run, 1, following);
    }),
  );
}

/** What runs are started with here, those of a session's turns included. */
export function startedWith(
  { hints }: ReadyConfig,
  project: Project | undefined,
  options: Options,
): Pick<SessionOptions, 'limits' | 'agent' | 'context' | 'labels' | 'onFail'> {
  const { agent, input, timeoutMs, labels, onFail } = options;
  const onCeiling = timeoutMs === undefined ? (project?.limits?.onCeiling ?? 'pause') : 'finish';
  return {
    limits: { ...limitsOf(options), onCeiling },
    ...defined({ agent, labels, onFail }),
    context: defined({ hints, args: input }),
  };
}

export const NO_MODEL =
  'No model is set up, so a fixed survey of the folder follows; pilotage run --help says how to set one up.';
