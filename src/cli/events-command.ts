/** `pilotage events`: what happens in a run, whichever process carries it out. It looks on, and drives nothing. */
import { PilotageError, type RunEvent } from '#core';
import type { Journal } from '#journal';
import { type Speaker, speakerOn } from '#runtime';
import { EventLines } from './event-lines.ts';
import { DECIDES_NOTHING, isAboutPlan, noteOpenStep, withRuntime } from './follow-run.ts';
import type { Options } from './options.ts';
import { commandsFor, pauseLines, pauseNotices } from './pause-lines.ts';
import { PlanSeen } from './plan-lines.ts';
import { openJournal, withJournal } from './project.ts';
import { codeOfResult, EXIT, type Terminal } from './terminal.ts';
import { shortLine, terminalJson } from './text.ts';

/** @returns the exit code: with `--follow` that of the run. */
export async function eventsCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const { follow, from = 1, json, tasks } = options;
  return withJournal(await openJournal(options, 'look'), (journal) =>
    withRuntime(DECIDES_NOTHING, journal, terminal, async (runtime) => {
      const run = runtime.run(id);
      const log = new EventLog(id, journal, options, terminal);
      if (!json) await log.begin(from);
      for await (const event of run.events({ from, follow, tasks, overPauses: true })) {
        if (json) terminal.write(`${terminalJson(event)}\n`);
        else await log.show(event);
      }
      if (!json) await log.end();
      return follow ? codeOfResult(await run.result()) : EXIT.goal;
    }),
  );
}

/** What is known of a run, or of a task below it, to tell its events. */
interface Reader {
  readonly seen: PlanSeen;
  readonly lines: EventLines;
}

/** The lines of events, and below a question that is still open how it is answered. */
class EventLog {
  readonly #id: string;
  readonly #journal: Journal;
  readonly #options: Options;
  readonly #terminal: Terminal;
  readonly #readers = new Map<string, Reader>();
  readonly #states: Speaker['states'];
  /** The open questions whose commands were shown. */
  #shown: ReadonlySet<string> = new Set();
  /** Those that were open at the beginning. */
  #open: ReadonlySet<string> = new Set();
  /** What is behind this entry comes while it is looked at. */
  #head = 0;

  constructor(id: string, journal: Journal, options: Options, terminal: Terminal) {
    this.#id = id;
    this.#journal = journal;
    this.#states = speakerOn(journal).states;
    this.#options = options;
    this.#terminal = terminal;
  }

  async begin(from: number): Promise<void> {
    const state = await this.#states.of(this.#id).catch(unlessNotThere);
    if (state === undefined) return;
    this.#head = state.head;
    if (state.ending === null) this.#open = new Set(pauseNotices(state).map(({ token }) => token));
    if (from > 1) noteOpenStep(this.#of(this.#id).seen, await this.#journal.read(this.#id, 1, from - 1));
  }

  async show(event: RunEvent): Promise<void> {
    const { run } = event.identity;
    const isOfTask = run !== this.#id;
    const { seen, lines } = this.#of(run);
    if (isAboutPlan(event)) for (const entry of await this.#journal.read(run, event.seq, 1)) seen.note(entry);
    // The task tells it itself.
    if (this.#options.tasks && event.type === 'tool.chunk' && event.run !== run) return;
    const whose = isOfTask ? `task ${shortLine(run, 80)}  ` : '';
    for (const { text } of lines.of(event)) this.#terminal.write(`${timeOf(event)}  ${whose}${text}\n`);
    if (this.#options.follow && !isOfTask && this.#asksStill(event)) await this.#showOpen();
  }

  async end(): Promise<void> {
    if (!this.#options.follow) await this.#showOpen();
  }

  #of(run: string): Reader {
    const known = this.#readers.get(run);
    if (known !== undefined) return known;
    const seen = new PlanSeen();
    const reader = { seen, lines: new EventLines({ texts: true, plan: seen }) };
    this.#readers.set(run, reader);
    return reader;
  }

  /** What was answered before anybody looked needs no commands, and no look at the run. */
  #asksStill(event: RunEvent): boolean {
    if (event.type !== 'pause.requested' && event.type !== 'task.paused') return false;
    const tokens = event.type === 'task.paused' ? event.pauses.map(({ token }) => token) : [event.token];
    return event.seq > this.#head || tokens.some((token) => this.#open.has(token));
  }

  /** A question is shown once, however many others come after it. */
  async #showOpen(): Promise<void> {
    const state = await this.#states.of(this.#id).catch(unlessNotThere);
    if (state === undefined || state.ending !== null) return;
    const pauses = pauseNotices(state);
    const fresh = pauses.filter(({ token }) => !this.#shown.has(token));
    this.#shown = new Set(pauses.map(({ token }) => token));
    const ways = commandsFor(this.#id, this.#options);
    // Others may come, and then each command has to say which one it is about.
    const lines = pauseLines(this.#id, fresh, ways, this.#options.follow === true || pauses.length > 1);
    for (const { text } of lines) this.#terminal.write(`${text}\n`);
  }
}

function unlessNotThere(error: unknown): undefined {
  if (!PilotageError.is(error, 'run_not_found')) throw error;
}

/** On the clock of whoever wrote it: the processes of a run may be on several machines. */
function timeOf({ occurredAt }: RunEvent): string {
  return new Date(occurredAt).toISOString();
}
