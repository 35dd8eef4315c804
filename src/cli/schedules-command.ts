/** `pilotage schedules`: lists what starts runs again and again, and puts, pauses, resumes, triggers, shows and deletes one. */
import { defined } from '#core';
import type { CatchUp, OverlapMode, Runtime, ScheduleOptions, ScheduleRecord } from '#runtime';
import { DECIDES_NOTHING, followRun, limitsOf, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { findProject, journalOf, openJournal, setUpProject, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { shortLine, terminalJson } from './text.ts';

export interface SchedulesCommand {
  readonly action: string;
  /** The schedule. */
  readonly id: string;
  readonly query: string;
}

/** @returns the exit code. */
export async function schedulesCommand(said: SchedulesCommand, options: Options, terminal: Terminal): Promise<number> {
  if (said.action === 'put') return put(said, options, terminal);
  if (said.action === 'trigger') return trigger(said, options, terminal);
  const looks = said.action === 'list' || said.action === 'show';
  return withJournal(await openJournal(options, looks ? 'look' : 'write'), (journal) =>
    withRuntime(DECIDES_NOTHING, journal, terminal, async ({ schedules }) => {
      await changeOrShow(schedules, said, options, terminal);
      return EXIT.goal;
    }),
  );
}

async function changeOrShow(
  schedules: Runtime['schedules'],
  { action, id }: SchedulesCommand,
  options: Options,
  terminal: Terminal,
): Promise<void> {
  const of = tenantOf(options);
  switch (action) {
    case 'list': {
      const found = await schedules.list({ ...of, ...defined({ limit: options.limit }) });
      for (const each of found) terminal.write(`${options.json ? terminalJson(each) : row(each)}\n`);
      if (found.length === 0 && !options.json) terminal.note('No schedules.');
      return;
    }
    case 'pause':
      return tell(await schedules.pause(id, of), options, terminal);
    case 'resume':
      return tell(await schedules.resume(id, of), options, terminal);
    case 'delete':
      if (!(await schedules.delete(id, of))) throw noSchedule(id);
      terminal.note(`Deleted: ${id}. Its runs are kept.`);
      return;
    default: {
      const found = await schedules.get(id, of);
      if (found === undefined) throw noSchedule(id);
      terminal.write(`${terminalJson(found)}\n`);
    }
  }
}

async function put({ id, query }: SchedulesCommand, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  const { agent, everyMs, cron, timezone, overlap, catchUp, session, labels, input, user } = options;
  const ready = await setUpProject(options, project, agent === undefined ? {} : { stored: { agent } });
  const { tenant = 'local' } = options;
  const about: ScheduleOptions = {
    id,
    query,
    limits: limitsOf(options),
    ...(user === undefined && options.tenant === undefined ? {} : { identity: { tenant, user: user ?? 'local' } }),
    ...defined({ agent, everyMs, cron, timezone, session, labels, input }),
    ...defined({ overlap: overlap as OverlapMode | undefined, catchUp: catchUp as CatchUp | undefined }),
  };
  return withJournal(journalOf(options, project), (journal) =>
    withRuntime(ready, journal, terminal, async ({ schedules }) => {
      tell(await schedules.put(about), options, terminal);
      return EXIT.goal;
    }),
  );
}

/** Starts it now, and shows the run until it ends or is paused. */
async function trigger({ id }: SchedulesCommand, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(journalOf(options, project), async (journal) => {
    const stored = await journal.schedules.get(options.tenant ?? 'local', id);
    if (stored === undefined) throw noSchedule(id);
    const ready = await setUpProject(options, project, { stored });
    return withRuntime(ready, journal, terminal, async (runtime) => {
      const run = await runtime.schedules.trigger(id, tenantOf(options));
      return followRun(run, 1, { runtime, journal, options, terminal });
    });
  });
}

function tell(schedule: ScheduleRecord, options: Options, terminal: Terminal): void {
  terminal.write(`${options.json ? terminalJson(schedule) : row(schedule)}\n`);
}

function tenantOf({ tenant }: Options): { tenant?: string } {
  return defined({ tenant });
}

function noSchedule(id: string): UsageError {
  return new UsageError(
    `There is no schedule ${JSON.stringify(id)}. pilotage schedules list shows those that there are.`,
  );
}

function row({ id, cron, timezone, everyMs, status, nextAt, query, session }: ScheduleRecord): string {
  const when = cron === undefined ? `every ${(everyMs ?? 0) / 1000} s` : `${cron} ${timezone}`;
  const next = status === 'paused' ? 'paused' : nextAt === null ? 'over' : new Date(nextAt).toISOString();
  const said = session === undefined ? '' : `to ${shortLine(session, 40)}: `;
  return `${id.padEnd(20)}  ${when.padEnd(28)}  ${next.padEnd(24)}  ${said}${shortLine(query, 80)}`;
}
