/** Entries and messages in one line each, for the timeline of a history. */
import type { Decision, Entry, Message, Outcome } from '#core';
import type { Park, StreamAppend } from '#journal';

export function entryText(entry: Entry): string {
  return `${entry.seq} ${entry.kind} ${detail(entry)}`.trimEnd();
}

function detail(entry: Entry): string {
  switch (entry.kind) {
    case 'started':
      return `${entry.query} ${short(entry.limits)}`;
    case 'moved':
      return `${entry.step} ${decisionText(entry.decision)}${entry.rejected === undefined ? '' : ' (rejected)'}`;
    case 'call_began':
      return `${entry.step}.${entry.call}`;
    case 'call_ended':
      return `${entry.step}.${entry.call} ${outcomeText(entry.outcome)}`;
    case 'paused':
      return `${place(entry)} ${entry.reason} ${entry.token}`;
    case 'resumed':
      return `${entry.verdict} ${entry.token}${entry.args === undefined ? '' : ' with other arguments'}`;
    case 'control':
      return `${messageText(entry.control)} ${controlState(entry)}`;
    case 'spawned':
      return `${entry.task} in ${entry.group}${entry.retained ? ', retained' : ''} ${short(entry.reserved)}`;
    case 'awaiting':
      return `${entry.task}${entry.group === undefined ? '' : ` and its group ${entry.group}`}`;
    case 'task_ended':
      return `${entry.task} ${entry.status} ${short(entry.usage)}`;
    case 'task_paused':
      return `${entry.task}: ${entry.pauses.map(({ token }) => token).join(', ') || 'goes on'}`;
    case 'group_ended':
      return `${entry.group} ${entry.status} ${entry.reason ?? ''}`;
    case 'finished':
      return `${entry.reason} ${short(entry.metadata ?? {})}`;
    case 'failed':
      return `${entry.error.code}: ${entry.error.message}`;
    default:
      return short(entry);
  }
}

function place({ step, call }: { readonly step?: number; readonly call?: number }): string {
  if (step === undefined) return '';
  return call === undefined ? `${step}` : `${step}.${call}`;
}

function controlState(entry: Extract<Entry, { kind: 'control' }>): string {
  if (entry.undelivered === true) return 'undelivered';
  return entry.applied ? 'applied' : `refused as ${entry.error?.code ?? 'nothing'}`;
}

export function messageText(message: Message): string {
  const { id, type, ...rest } = message;
  return `${type} ${id} ${short(rest)}`;
}

export function parkText({ wakeInMs, status, asBefore }: Park): string {
  if (asBefore !== undefined) return `as before, due at ${asBefore.wakeAt}, ${asBefore.status}`;
  const until = typeof wakeInMs === 'number' ? `for ${wakeInMs} ms` : `until ${String(wakeInMs)}`;
  return `${until}, ${status ?? 'same status'}`;
}

export function rowsText({ step, call, attempt, rows }: StreamAppend): string {
  const texts = rows.map((row) => ('value' in row ? `${row.name} ${short(row.value)}` : `${row.name} is closed`));
  return `of ${step}.${call}, attempt ${attempt}: ${texts.join(', ')}`;
}

function decisionText(decision: Decision): string {
  const { kind, ...rest } = decision;
  return `${kind} ${short(rest)}`;
}

function outcomeText(outcome: Outcome): string {
  if ('error' in outcome) return `${outcome.kind} ${outcome.error.code}`;
  if (outcome.kind === 'verdict') return `verdict ${outcome.verdict}`;
  return `value ${short(outcome.value)}`;
}

const LONGEST = 240;

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? '';
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
