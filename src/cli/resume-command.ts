/** `pilotage resume`: a paused run, one whose process died, or one that has ended and only shows its answer again. */
import { isJsonObject, PilotageError } from '#core';
import { foldEntries } from '#state';
import { followRun, withRuntime } from './drive.ts';
import { EXIT, UsageError } from './exit-code.ts';
import { goOn, isAsking } from './go-on.ts';
import { hint } from './hint.ts';
import { storedJournal, withJournal } from './open-journal.ts';
import type { Options } from './options.ts';
import { findProject, setUpProject } from './project.ts';
import { survey } from './survey.ts';
import type { Terminal } from './terminal.ts';
import { shortLine } from './text.ts';

/** @returns the exit code. */
export async function resumeCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'write'), async (journal) => {
    const state = foldEntries(await journal.read(id));
    if (state.ending?.kind === 'finished') {
      if (isAsking(options)) throw new UsageError('The run has ended: it takes no message and no limit any more.');
      // Nobody has to decide any more: any planner will do.
      const nobody = { runtime: { planner: survey } };
      return withRuntime(nobody, journal, terminal, (runtime) =>
        followRun(runtime.run(id), state.head, { journal, options, terminal }),
      );
    }
    return withRuntime(await setUpProject(options, project, { stored: state }), journal, terminal, async (runtime) => {
      try {
        return await goOn({ runtime, journal, run: runtime.run(id), options, terminal });
      } catch (error) {
        if (!PilotageError.is(error, 'run_changed')) throw error;
        return showChanges(id, error, options, terminal);
      }
    });
  });
}

function showChanges(id: string, { code, data }: PilotageError, options: Options, terminal: Terminal): number {
  terminal.note(`pilotage: The run was started with other code than this (${code}):`, 'bad');
  const changes = data?.['changes'];
  for (const change of Array.isArray(changes) ? changes : []) {
    if (!isJsonObject(change)) continue;
    const { what, was, now } = change;
    const difference = now === undefined ? 'is gone' : `${short(was)} → ${short(now)}`;
    terminal.note(`  ${shortLine(String(what), 80)}: ${difference}`);
  }
  terminal.note(`If it may go on all the same: ${hint('resume', id, options, '--accept-changes')}`, 'strong');
  return EXIT.refused;
}

/** Enough of a digest to tell two apart. */
function short(value: unknown): string {
  return shortLine(String(value), 24);
}
