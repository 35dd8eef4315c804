/** `pilotage plan`: makes a plan and carries it out, only makes it, or shows the one of a stored run. */

import { foldEntries, planOf } from '#state';
import { showPauses } from './drive.ts';
import { EXIT, UsageError } from './exit-code.ts';
import { openJournal, withJournal } from './open-journal.ts';
import type { Options } from './options.ts';
import { openPauses } from './pause-lines.ts';
import { dryPlan } from './plan-dry.ts';
import { planLines } from './plan-text.ts';
import { traceLines } from './plan-trace.ts';
import { findProject, setUpProject } from './project.ts';
import { startRun } from './run-command.ts';
import type { Terminal } from './terminal.ts';
import { terminalJson } from './text.ts';

/** @returns the exit code. */
export async function planCommand(goal: string, options: Options, terminal: Terminal): Promise<number> {
  const { run, dryRun } = options;
  if (run !== undefined) {
    if (dryRun) throw new UsageError('--dry-run is for a goal, --run for a run that is stored.');
    return storedPlan(run, options, terminal);
  }
  const project = await findProject(options);
  const ready = await setUpProject(options, project, { plans: true });
  if (dryRun) return dryPlan(goal, ready, options, terminal);
  return startRun({ goal, project, ready, showsPlans: true }, options, terminal);
}

async function storedPlan(id: string, options: Options, terminal: Terminal): Promise<number> {
  const entries = await withJournal(await openJournal(options, 'look'), (journal) => journal.read(id));
  const state = foldEntries(entries);
  const plan = planOf(state);
  if (plan === undefined) throw new UsageError('The run has carried out no plan; inspect shows what it did.');
  if (options.json) terminal.write(`${terminalJson(plan)}\n`);
  else {
    const made = (state.open?.move.step === plan.step ? state.open.move : state.steps[plan.step]) ?? {};
    for (const line of [...planLines(plan), ...traceLines(made)]) terminal.write(`${line}\n`);
    if (state.ending === null) showPauses(id, openPauses(state), options, terminal);
  }
  return EXIT.goal;
}
