/** `pilotage erase`: the content of one person, everywhere. */
import { systemClock } from '#core';
import { eraseUser, longTermMemory } from '#runtime';
import type { Options } from './options.ts';
import { findProject, storedJournal, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { count, shortLine, terminalJson } from './text.ts';

/** @returns the exit code: 6 while something is left. */
export async function eraseCommand(options: Options, terminal: Terminal): Promise<number> {
  const { user, tenant = 'local', yes, json } = options;
  if (user === undefined) throw new UsageError('erase needs --user: whose content is erased.');
  if (!yes) throw new UsageError('erase needs --yes: nothing brings the content back.');
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'write'), async (journal) => {
    const memory = longTermMemory(journal, systemClock, project?.store ?? {});
    const deps = { journal, memory, clock: systemClock };
    // The process that has it ends it then.
    const settle = async (run: string): Promise<void> => {
      const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
      await journal.signal(run, { id, type: 'CANCEL', payload: { reason: 'The content of its user is erased.' } });
    };
    const { left, ...counts } = await eraseUser(deps, { tenant, user }, settle);
    const told = left.map(({ run, error }) => ({ run, error: error.toJSON() }));
    if (json) terminal.write(`${terminalJson({ tenant, user, ...counts, left: told })}\n`);
    else {
      const { runs, artifacts, items, schedules } = counts;
      const what = [count(runs, 'run'), count(artifacts, 'artifact'), count(items, 'item', 'items')];
      if (schedules > 0) what.push(count(schedules, 'schedule'));
      terminal.write(`Erased of ${shortLine(user, 60)}: ${what.join(', ')}.\n`);
    }
    for (const { run, error } of told) {
      terminal.note(`Left: ${shortLine(run, 80)}: ${shortLine(error.message, 300)}`, 'bad');
    }
    if (left.length > 0) terminal.note('Artifacts are kept until no run is left: erase again.', 'strong');
    return left.length === 0 ? EXIT.goal : EXIT.refused;
  });
}
