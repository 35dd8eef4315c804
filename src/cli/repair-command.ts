/** `pilotage repair`: what is wrong with a run that cannot be read, and, with `--apply`, sets it right. */
import { defined, Redaction, systemClock } from '#core';
import { type Diagnosis, diagnose, repairRun } from '#runtime';
import { hint, type Options } from './options.ts';
import { openJournal, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { count, shortLine, terminalJson } from './text.ts';

/** @returns the exit code: 4 while something is wrong. */
export async function repairCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const { apply, by, reason } = options;
  if (apply && by === undefined) throw new UsageError('--apply needs --by: who repairs the run is recorded.');
  if (!apply && (by !== undefined || reason !== undefined)) throw new UsageError('--by and --reason go with --apply.');
  const journal = await openJournal(options, apply ? 'write' : 'look');
  return withJournal(journal, async () => {
    const newToken = (): string => `pause_${crypto.randomUUID().replaceAll('-', '')}`;
    const found =
      by === undefined
        ? await diagnose(journal, id)
        : await repairRun({ journal, clock: systemClock, redaction: new Redaction(), newToken }, id, {
            by,
            ...defined({ reason }),
          });
    if (options.json)
      terminal.write(
        `${terminalJson(found === undefined ? { run: id, whole: true } : { ...found, applied: apply })}\n`,
      );
    else for (const text of lines(id, found, options)) terminal.write(`${text}\n`);
    return found === undefined || apply ? EXIT.goal : EXIT.journal;
  });
}

const MAX_SHOWN = 20;

function* lines(id: string, found: Diagnosis | undefined, options: Options): Generator<string> {
  if (found === undefined) return yield 'Nothing is wrong: every entry can be read, and follows those before it.';
  const { goodUpTo, head, refused, messages, snapshot, lostCalls, unreadable, begun } = found;
  if (snapshot !== undefined) {
    yield `The snapshot at entry ${snapshot} says something else than the entries, which are whole.`;
    if (options.apply) return yield 'It was thrown away: the run is read from its entries.';
    return yield `Throw it away with: ${hint('repair', id, options, '--apply --by <name>')}`;
  }
  for (const { seq, problem, entry } of refused) {
    yield `entry ${seq}${entry === undefined ? '' : ` (${entry.kind})`}: ${shortLine(problem.message, 300)}`;
    if (entry?.kind === 'control') yield `  it took ${entry.control.type}: say it again if it still holds`;
  }
  for (const message of messages) yield `message ${shortLine(message.id, 80)}: the body is not JSON`;
  if (goodUpTo === 0)
    return yield 'The first entry of the run cannot be read, and nothing can be repaired without it: restore the journal from a backup.';
  for (const { step, call } of lostCalls) {
    yield `call ${step + 1}.${call + 1} may have been made, and its step is lost: check what it has changed before the run goes on`;
  }
  if (unreadable.length > 0) {
    const which = unreadable.slice(0, MAX_SHOWN).join(', ') + (unreadable.length > MAX_SHOWN ? ', …' : '');
    yield `${unreadable.length === 1 ? 'entry' : 'entries'} ${which} cannot be read: calls made there, also those that must not be made twice, are forgotten and may be made again: check what they have changed before the run goes on`;
  }
  for (const call of begun)
    yield `call ${call + 1} of the open step may have been made: it is looked up, or held until it is settled`;
  const what = count(refused.length + messages.length, 'entry', 'entries');
  if (options.apply) {
    yield `Set aside: ${what}, kept in an artifact. The run is paused if it has not ended.`;
    yield `Look at the run with: ${hint('inspect', id, options)}`;
    return;
  }
  yield `The run can be read up to entry ${goodUpTo} of ${head}, and forked from there. A repair sets ${what} aside, and pauses the run.`;
  yield `Repair the run with: ${hint('repair', id, options, '--apply --by <name>')}`;
}
