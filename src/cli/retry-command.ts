/** `pilotage retry`: what has failed of a run's plan is carried out again. */
import { defined, PilotageError } from '#core';
import { foldEntries } from '#state';
import { followRun, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { findProject, setUpProject, storedJournal, whenFree, withJournal } from './project.ts';
import { showChanges } from './resume-command.ts';
import type { Terminal } from './terminal.ts';

/** @returns the exit code: how the run ended. */
export async function retryCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'write'), async (journal) => {
    const stored = foldEntries(await whenFree(terminal, () => journal.read(id)));
    return withRuntime(await setUpProject(options, project, { stored }), journal, terminal, async (runtime) => {
      const run = runtime.run(id);
      const { nodeIds: nodes, acceptChanges } = options;
      try {
        await run.retry({ acceptChanges, ...defined({ nodes }) });
      } catch (error) {
        if (!PilotageError.is(error, 'run_changed')) throw error;
        return showChanges(id, error, options, terminal, 'retry');
      }
      return followRun(run, stored.head + 1, { runtime, journal, options, terminal });
    });
  });
}
