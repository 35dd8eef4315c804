/** `pilotage rules`: answers that hold for questions to come, for people to read and take back. */
import { defined, runOfRule } from '#core';
import type { Journal } from '#journal';
import { type Runtime, sendControl } from '#runtime';
import { foldEntries } from '#state';
import { ruleText } from './approval-lines.ts';
import { DECIDES_NOTHING, withRuntime } from './follow-run.ts';
import { hint, type Options } from './options.ts';
import { openJournal, userName, withJournal } from './project.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { shortLine, terminalJson } from './text.ts';

/** @returns the exit code. */
export async function rulesCommand(act: string, id: string, options: Options, terminal: Terminal): Promise<number> {
  return withJournal(await openJournal(options, act === 'list' ? 'look' : 'write'), async (journal) => {
    if (act === 'revoke' && (await isOfRun(journal, id))) return revokeInRun(journal, id, options, terminal);
    return withRuntime(DECIDES_NOTHING, journal, terminal, async (runtime) => {
      if (act === 'list') return list(runtime, options, terminal);
      await runtime.rules.revoke(id);
      terminal.note(`Revoked: ${shortLine(id, 200)}. Calls like those are asked about again.`);
      return EXIT.goal;
    });
  });
}

async function list({ rules }: Runtime, options: Options, terminal: Terminal): Promise<number> {
  const { tenant = 'local', user = userName(), session, run, json } = options;
  const found = await rules.list({ tenant, user, ...defined({ session, run }) });
  for (const rule of found) terminal.write(`${json ? terminalJson(rule) : ruleText(rule)}\n`);
  if (found.length === 0 && !json) terminal.note(`${shortLine(user, 60)} has no rules.`);
  return EXIT.goal;
}

async function isOfRun(journal: Journal, id: string): Promise<boolean> {
  const run = runOfRule(id);
  if (run === undefined || (await journal.get(run)) === undefined) return false;
  return foldEntries(await journal.read(run)).rules.some((rule) => rule.id === id);
}

/** The run records it: whoever drives the run takes it. */
async function revokeInRun(journal: Journal, id: string, options: Options, terminal: Terminal): Promise<number> {
  const run = runOfRule(id) ?? '';
  const control = `control_${crypto.randomUUID().replaceAll('-', '')}`;
  await sendControl(journal, run, { id: control, type: 'REVOKE', payload: { rule: id } });
  terminal.note(`Stored with the run, which takes it before it goes on: ${hint('inspect', run, options)}`);
  return EXIT.goal;
}
