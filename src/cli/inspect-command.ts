/** `pilotage inspect`: a run's journal, told from its beginning. It looks at what is written, and waits for nothing. */
import {
  defined,
  type Entry,
  type ErrorData,
  type GroupView,
  isControl,
  type Message,
  PilotageError,
  type RunEvent,
} from '#core';
import type { Journal, StreamRecord } from '#journal';
import { foldable, type PauseNotice, wholeAnswerOf, wholePauses } from '#runtime';
import { applyEntry, eventsOf, groupView, isPaused, openState, planOf, type RunState, type TaskState } from '#state';
import { ruleText } from './approval-lines.ts';
import { byWhom, EventLines } from './event-lines.ts';
import { hint, type Options } from './options.ts';
import { commandsFor, pauseLines, pauseNotices, problemText } from './pause-lines.ts';
import { PlanSeen } from './plan-lines.ts';
import { treeLines } from './plan-text.ts';
import { openJournal, withJournal } from './project.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { count, dollars, duration, harmless, shortLine, terminalJson, tokenWords } from './text.ts';

/** @returns the exit code. */
export async function inspectCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const looked = await withJournal(await openJournal(options, 'look'), async (journal) => {
    const { entries, problem } = await foldable(journal, id);
    const { told, state } = replay(entries);
    const answer = await wholeAnswerOf(state, journal.artifacts);
    const pauses = await wholePauses(pauseNotices(state), state.identity, { journal });
    const streams = await journal.streams.list(id);
    const stopped = (await journal.get(id))?.problem;
    return {
      told,
      streams,
      state,
      answer,
      pauses,
      stopped,
      head: entries.length,
      ...defined({ problem }),
      ...(await inboxOf(journal, id)),
    };
  });
  const { told, problem } = looked;
  if (options.json)
    for (const event of told.flatMap(({ events }) => events)) terminal.write(`${terminalJson(event)}\n`);
  else for (const line of report(looked, options)) terminal.write(`${line}\n`);
  if (problem === undefined) return EXIT.goal;
  const where = `The run is shown up to entry ${looked.head}`;
  terminal.note(`pilotage: ${where}: ${shortLine(problem.message, 500)} (${problem.code})`, 'bad');
  terminal.note(`What can be done: ${hint('repair', id, options)}`, 'strong');
  return EXIT.journal;
}

/** A message that cannot be read is a problem of the run, as an entry is. */
async function inboxOf(
  journal: Journal,
  id: string,
): Promise<{ readonly inbox: readonly Message[]; readonly problem?: PilotageError }> {
  try {
    return { inbox: (await journal.inbox(id)).map(({ message }) => message) };
  } catch (problem) {
    if (!PilotageError.is(problem, 'journal_corrupt')) throw problem;
    return { inbox: [], problem };
  }
}

interface Told {
  readonly entry: Entry;
  readonly events: readonly RunEvent[];
}

function replay(entries: readonly Entry[]): { told: Told[]; state: RunState } {
  const told: Told[] = [];
  let state: RunState | undefined;
  for (const entry of entries) {
    told.push({ entry, events: eventsOf(entry, state) });
    if (state === undefined) state = openState(entry);
    else applyEntry(state, entry);
  }
  if (state === undefined) throw new Error('A stored run has entries.');
  return { told, state };
}

interface Looked {
  readonly told: readonly Told[];
  readonly state: RunState;
  readonly answer: string | undefined;
  readonly pauses: readonly PauseNotice[];
  /** Why the process that wanted to go on last could not. */
  readonly stopped: ErrorData | undefined;
  readonly inbox: readonly Message[];
  readonly streams: readonly StreamRecord[];
}

function* report(
  { told, state, answer, pauses, stopped, inbox, streams }: Looked,
  options: Options,
): Generator<string> {
  yield* heading(state);
  yield '';
  yield* timeline(told, state.startedAt);
  yield '';
  const plan = planOf(state);
  if (plan !== undefined) yield* [...treeLines(plan), ''];
  yield* sections(state, pauses, inbox, options);
  if (stopped !== undefined) yield* section('problem', [problemText(stopped)]);
  if (streams.length > 0) yield* section('streams', streams.map(streamText));
  yield `totals   ${totals(state)}`;
  if (answer !== undefined) yield* ['', harmless(answer).trimEnd()];
}

function* timeline(told: readonly Told[], startedAt: number): Generator<string> {
  const plan = new PlanSeen();
  const lines = new EventLines({ texts: true, plan });
  for (const { entry, events } of told) {
    plan.note(entry);
    const at = `+${((entry.at - startedAt) / 1000).toFixed(3)}`.padStart(10);
    for (const event of events) for (const { text } of lines.of(event)) yield `${at}  ${text}`;
  }
}

function* heading(state: RunState): Generator<string> {
  const { identity, startedAt, updatedAt, agent, query, goal, task, fork } = state;
  yield `run      ${identity.run}  ${statusOf(state)}`;
  yield `for      ${shortLine(`${identity.user} (tenant ${identity.tenant}, session ${identity.session})`, 200)}`;
  if (task !== null) yield `task of  ${shortLine(task.parent, 80)}: ${shortLine(task.description, 160)}`;
  if (fork !== null)
    yield `fork of  ${shortLine(fork.run, 80)}, from step ${fork.step + 1} on, once calls ${fork.effects}`;
  if (state.erased !== null)
    yield `erased   ${new Date(state.erased).toISOString()}: only skeletons of its entries are left`;
  yield `query    ${shortLine(query, 300)}`;
  if (goal !== query) yield `goal     ${shortLine(goal, 300)}`;
  yield `agent    ${shortLine(agent, 80)}`;
  yield `started  ${new Date(startedAt).toISOString()}, last entry ${duration(updatedAt - startedAt)} later`;
}

function statusOf(state: RunState): string {
  const { ending } = state;
  if (ending?.kind === 'finished') return `finished: ${ending.reason}`;
  if (ending?.kind === 'failed') return `failed: ${shortLine(ending.error.code, 60)}`;
  const { unwinding } = state;
  const undoes = unwinding === null ? '' : `, undoes what it has done (${endWords(unwinding.ending)})`;
  return `${isPaused(state) ? 'paused' : 'not ended'}${undoes}`;
}

/** How a run that undoes its calls is to end. */
function endWords(ending: NonNullable<RunState['unwinding']>['ending']): string {
  return ending.kind === 'failed' ? shortLine(ending.error.code, 60) : ending.reason;
}

function totals({ totals }: RunState): string {
  const { steps, calls, costMicroUsd, estimated } = totals;
  return `${count(steps, 'step')}, ${count(calls, 'call')}, ${tokenWords(totals)}, ${dollars(costMicroUsd)}${estimated === true ? ' (partly estimated)' : ''}`;
}

// What a run has under way, beside its own steps: tasks, groups, pauses, and controls that nobody has taken.

function* sections(
  state: RunState,
  pauses: readonly PauseNotice[],
  inbox: readonly Message[],
  options: Options,
): Generator<string> {
  const { tasks, groups, identity, ending, rules } = state;
  if (tasks.length > 0) yield* section('tasks', tasks.map(taskText));
  const views = groups.flatMap(({ id }) => groupView(state, id) ?? []).filter(({ members }) => members.length > 1);
  if (views.length > 0) yield* section('groups', views.map(groupText));
  const controls = inbox.filter(isControl);
  if (controls.length > 0) {
    const texts = controls.map(({ type, from }) => `${type}${byWhom(from)}, not taken yet`);
    yield* section('inbox', texts);
  }
  if (rules.length > 0) yield* section('rules', rules.map(ruleText));
  if (ending !== null) return;
  if (state.breakpoints.length > 0) yield* section('stops', state.breakpoints.map(breakpointText));
  const asked = pauseLines(identity.run, pauses, commandsFor(identity.run, options)).map(({ text }) => text);
  if (asked.length > 0) yield* section('open', asked);
}

function* section(title: string, lines: readonly string[]): Generator<string> {
  for (const [index, line] of lines.entries()) yield `${(index === 0 ? title : '').padEnd(7)}  ${line}`;
}

function breakpointText(at: RunState['breakpoints'][number]): string {
  if (at === 'next') return 'before the next call';
  return 'node' in at ? `before the node ${shortLine(at.node, 80)}` : `before the tool ${shortLine(at.tool, 80)}`;
}

function streamText({ name, rows, closed }: StreamRecord): string {
  return `${shortLine(name, 80)}  ${count(rows, 'row')}${closed ? ', closed' : ''}`;
}

function taskText({ id, kind, description, end, pauses }: TaskState): string {
  const status = end?.status ?? (pauses.length > 0 ? 'paused' : 'under way');
  const error = end?.error === undefined ? '' : ` (${shortLine(end.error.code, 60)})`;
  const used = end === undefined ? '' : `, ${count(end.usage.steps, 'step')}`;
  return `${shortLine(id, 80)}  ${kind}, ${status}${error}${used}: ${shortLine(description, 120)}`;
}

function groupText({ id, status, reason, members }: GroupView): string {
  const because = reason === undefined ? '' : ` (${shortLine(reason, 80)})`;
  return `${shortLine(id, 80)}  ${status}${because}, ${count(members.length, 'task')}`;
}
