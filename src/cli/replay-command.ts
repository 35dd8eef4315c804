/** `pilotage replay`: whether a run would be decided in the same way today. */
import type { Divergence, ReplayedMove, ReplayReport } from '#runtime';
import { foldEntries } from '#state';
import { decisionText } from './decision-text.ts';
import { withRuntime } from './drive.ts';
import { EXIT } from './exit-code.ts';
import { storedJournal, withJournal } from './open-journal.ts';
import type { Options } from './options.ts';
import { findProject, setUpProject } from './project.ts';
import type { Terminal } from './terminal.ts';
import { count, shortLine, terminalJson } from './text.ts';

/** @returns the exit code. */
export async function replayCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'look'), async (journal) => {
    const stored = foldEntries(await journal.read(id));
    return withRuntime(await setUpProject(options, project, { stored }), journal, terminal, async (runtime) => {
      const report = await runtime.run(id).replay();
      if (options.json) terminal.write(`${terminalJson(report)}\n`);
      else for (const text of reportLines(report)) terminal.write(`${text}\n`);
      return report.divergence === undefined ? EXIT.goal : EXIT.diverged;
    });
  });
}

function reportLines({ compared, divergence, from }: ReplayReport): string[] {
  const since = from === 0 ? '' : ` from step ${from + 1} on, where the fork begins`;
  if (compared === 0) return [`The run has decided nothing${since}.`];
  if (divergence !== undefined) return divergenceLines(divergence);
  return [compared === 1 ? `The decision agrees${since}.` : `All ${count(compared, 'decision')} agree${since}.`];
}

function divergenceLines({ step, recorded, now }: Divergence): string[] {
  return [
    `Step ${step + 1} would be decided otherwise.`,
    `- recorded  ${moveText(recorded)}`,
    `+ today     ${moveText(now)}`,
  ];
}

function moveText({ decision, error }: ReplayedMove): string {
  const words = decision === undefined ? [] : [decisionText(decision)];
  if (error !== undefined) words.push(`${shortLine(error.code, 60)}: ${shortLine(error.message, 200)}`);
  return words.join('  → ');
}
