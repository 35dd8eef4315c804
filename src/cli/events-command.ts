/** `pilotage events`: what happens in a run, whichever process carries it out. It looks on, and drives nothing. */
import type { RunEvent } from '#core';
import { EventLines } from './event-lines.ts';
import { isAboutPlan, noteOpenStep, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { PlanSeen } from './plan-lines.ts';
import { openJournal, withJournal } from './project.ts';
import { survey } from './survey.ts';
import { codeOfResult, EXIT, type Terminal } from './terminal.ts';
import { terminalJson } from './text.ts';

/** @returns the exit code: with `--follow` that of the run. */
export async function eventsCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const { follow, from = 1, json } = options;
  // Nobody has to decide anything: any planner will do.
  const nobody = { runtime: { planner: survey } };
  return withJournal(await openJournal(options, 'look'), (journal) =>
    withRuntime(nobody, journal, terminal, async (runtime) => {
      const run = runtime.run(id);
      const seen = new PlanSeen();
      const lines = new EventLines({ texts: true, plan: seen });
      if (!json && from > 1) noteOpenStep(seen, await journal.read(id, 1, from - 1));
      for await (const event of run.events({ from, follow, overPauses: true })) {
        if (json) {
          terminal.write(`${terminalJson(event)}\n`);
          continue;
        }
        if (isAboutPlan(event))
          for (const entry of await journal.read(event.identity.run, event.seq, 1)) seen.note(entry);
        for (const { text } of lines.of(event)) terminal.write(`${timeOf(event)}  ${text}\n`);
      }
      return follow ? codeOfResult(await run.result()) : EXIT.goal;
    }),
  );
}

/** On the clock of whoever wrote it: the processes of a run may be on several machines. */
function timeOf({ occurredAt }: RunEvent): string {
  return new Date(occurredAt).toISOString();
}
