/** `pilotage fork`: another way from one step of a run on, and what came of it. */
import { defined, type Step } from '#core';
import { type ForkOptions, foldable } from '#runtime';
import { compareRuns, type RunState } from '#state';
import { followRun, limitsOf, withRuntime } from './drive.ts';
import { UsageError } from './exit-code.ts';
import { storedJournal, withJournal } from './open-journal.ts';
import type { Options } from './options.ts';
import { findProject, setUpProject } from './project.ts';
import { diffLines } from './run-diff.ts';
import type { Terminal } from './terminal.ts';
import { count, terminalJson } from './text.ts';

/** @returns the exit code: how the fork ended. */
export async function forkCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'write'), async (journal) => {
    const { state: stored } = await foldable(journal, id);
    const plan = planOf(stored, options);
    return withRuntime(await setUpProject(options, project, { stored }), journal, terminal, async (runtime) => {
      const fork = await runtime.run(id).fork(plan);
      const { fork: origin } = await fork.state();
      const { step = 0, entries = 0 } = origin ?? {};
      if (!options.json) terminal.note(startText(fork.id, id, step, options), 'strong');
      const code = await followRun(fork, entries + 1, { journal, options, terminal });
      const comparison = compareRuns(stored, await fork.state());
      if (options.json) terminal.write(`${terminalJson({ type: 'comparison', ...comparison })}\n`);
      else for (const { text } of diffLines(comparison)) terminal.write(`${text}\n`);
      return code;
    });
  });
}

function startText(fork: string, run: string, step: number, { allowEffects }: Options): string {
  const effects = allowEffects ? 'once calls are made' : 'once calls are held back';
  return `⑂ ${fork} is a fork of ${run}: from step ${step + 1} on, ${effects}`;
}

/** Steps and calls are counted from 1 here, and from 0 inside. */
function planOf({ steps }: RunState, options: Options): ForkOptions {
  const { at, goal, allowEffects, result, call } = options;
  const limits = limitsOf(options);
  if (at !== undefined && at > steps.length + 1) {
    throw new UsageError(
      `--at ${at}: the run has taken ${count(steps.length, 'step')}. Give 1 to ${steps.length + 1}.`,
    );
  }
  if (call !== undefined && result === undefined) throw new UsageError('--call goes with --result.');
  if (result !== undefined) assertHasCall(steps, at ?? ownStep(steps), call);
  return {
    effects: allowEffects ? 'allowed' : 'held',
    ...(at === undefined ? {} : { step: at - 1 }),
    ...defined({ goal }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(result === undefined ? {} : { result: { value: result, ...(call === undefined ? {} : { call: call - 1 }) } }),
  };
}

/** The step after the last one that has calls: where a fork begins that names none. */
function ownStep(steps: readonly Step[]): number {
  return steps.findLastIndex(({ calls }) => calls.length > 0) + 2;
}

function assertHasCall(steps: readonly Step[], at: number, call: number | undefined): void {
  const calls = steps[at - 2]?.calls.length ?? 0;
  if (calls === 0)
    throw new UsageError(`--result: there is no call just before step ${at}. Give --at the step after one.`);
  if (call === undefined ? calls === 1 : call <= calls) return;
  throw new UsageError(
    `--result: step ${at - 1} has ${count(calls, 'call')}. Say which with --call, from 1 to ${calls}.`,
  );
}
