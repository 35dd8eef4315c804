/** What a run has under way, beside its own steps: tasks, groups, pauses, and controls that nobody has taken. */
import { type GroupView, isControl, type Message } from '#core';
import { groupView, type RunState, type TaskState } from '#state';
import { byWhom } from './event-lines.ts';
import type { Options } from './options.ts';
import { openPauses, pauseLines } from './pause-lines.ts';
import { count, shortLine } from './text.ts';

export function* sections(state: RunState, inbox: readonly Message[], options: Options): Generator<string> {
  const { tasks, groups, identity, ending } = state;
  if (tasks.length > 0) yield* section('tasks', tasks.map(taskText));
  const views = groups.flatMap(({ id }) => groupView(state, id) ?? []).filter(({ members }) => members.length > 1);
  if (views.length > 0) yield* section('groups', views.map(groupText));
  const controls = inbox.filter(isControl);
  if (controls.length > 0) {
    const texts = controls.map(({ type, from }) => `${type}${byWhom(from)}, not taken yet`);
    yield* section('inbox', texts);
  }
  if (ending !== null) return;
  const pauses = pauseLines(identity.run, openPauses(state), options).map(({ text }) => text);
  if (pauses.length > 0) yield* section('open', pauses);
}

function* section(title: string, lines: readonly string[]): Generator<string> {
  for (const [index, line] of lines.entries()) yield `${(index === 0 ? title : '').padEnd(7)}  ${line}`;
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
