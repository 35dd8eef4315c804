/** `pilotage sessions`: lists the sessions of a journal, shows, titles and deletes one. */
import { defined, PilotageError, type Scope } from '#core';
import type { Runtime } from '#runtime';
import { DECIDES_NOTHING, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { openJournal, userName, withJournal } from './project.ts';
import { branchRow, sessionRow, turnLines } from './session-lines.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { count, harmless, shortLine, terminalJson } from './text.ts';

export interface SessionsCommand {
  readonly action: string;
  /** The session. */
  readonly name: string;
  readonly title: string;
}

interface Asked {
  readonly runtime: Runtime;
  readonly scope: Scope;
  readonly options: Options;
  readonly terminal: Terminal;
}

/** @returns the exit code. */
export async function sessionsCommand(said: SessionsCommand, options: Options, terminal: Terminal): Promise<number> {
  const { action, name, title } = said;
  const looks = action === 'list' || action === 'show';
  return withJournal(await openJournal(options, looks ? 'look' : 'write'), (journal) =>
    withRuntime(DECIDES_NOTHING, journal, terminal, async (runtime) => {
      const { tenant = 'local', user = userName() } = options;
      const asked: Asked = { runtime, scope: { tenant, user, session: name }, options, terminal };
      if (action === 'list') await list(asked);
      else {
        await assertIsThere(asked);
        if (action === 'show') await show(asked);
        else if (action === 'title') await runtime.sessions.setTitle(asked.scope, title);
        else await deleted(asked);
      }
      return EXIT.goal;
    }),
  );
}

async function list({ runtime, options, terminal, scope: { tenant } }: Asked): Promise<void> {
  const { user, limit } = options;
  const sessions = await runtime.sessions.list({ tenant, ...defined({ user, limit }) });
  for (const each of sessions) terminal.write(`${options.json ? terminalJson(each) : sessionRow(each)}\n`);
  if (sessions.length === 0 && !options.json) terminal.note('No sessions.');
}

async function assertIsThere({ runtime, scope }: Asked): Promise<void> {
  if ((await runtime.sessions.get(scope)) !== undefined) return;
  const { user, session } = scope;
  const message = `${shortLine(user, 60)} has no session ${shortLine(session, 60)}. pilotage sessions list shows those that there are.`;
  throw new PilotageError('run_not_found', message);
}

async function show({ runtime, scope, options, terminal }: Asked): Promise<void> {
  const { session: name, ...identity } = scope;
  const session = runtime.session(name, { identity });
  const turns = await session.turns({ limit: options.limit ?? 50 });
  const branches = await session.branches();
  if (options.json) {
    for (const turn of turns) terminal.write(`${terminalJson(turn)}\n`);
    return;
  }
  const { title } = (await runtime.sessions.get(scope)) ?? {};
  if (title !== undefined) terminal.write(`${harmless(title)}\n`);
  for (const turn of turns) for (const line of turnLines(turn, true)) terminal.write(`${line}\n`);
  if (branches.length > 1) {
    terminal.write(`${count(branches.length, 'branch', 'branches')}, by the last message of each:\n`);
    await writeBranches(runtime, branches, terminal);
  }
}

/** Each with the message of its last turn. */
export async function writeBranches(
  runtime: Runtime,
  branches: Awaited<ReturnType<ReturnType<Runtime['session']>['branches']>>,
  terminal: Terminal,
): Promise<void> {
  for (const [index, { turn, active }] of branches.entries()) {
    const { query } = await runtime.run(turn).state();
    terminal.write(`${branchRow(index + 1, query, active)}\n`);
  }
}

async function deleted({ runtime, scope, options, terminal }: Asked): Promise<void> {
  const runs = await runtime.sessions.delete(scope);
  const { session } = scope;
  if (options.json) terminal.write(`${terminalJson({ session, deleted: runs })}\n`);
  else terminal.write(`Deleted: ${shortLine(session, 60)}, with ${count(runs, 'run')}.\n`);
}
