/** Sessions, their turns and branches as lines for people. */
import type { SessionRecord } from '#journal';
import type { TurnView } from '#runtime';
import { count, duration, harmless, shortLine } from './text.ts';

const CHARS = 120;

/** A session in one line. */
export function sessionRow({ session, user, title, turns, waiting, live, updatedAt }: SessionRecord): string {
  const age = `${duration(Date.now() - updatedAt)} ago`;
  const about = [count(turns, 'turn'), ...(live === undefined ? [] : [live.status])];
  if (waiting > 0) about.push(`${waiting} waiting`);
  const named = title === undefined ? '' : `  “${shortLine(title, CHARS)}”`;
  return `${shortLine(session, 60).padEnd(20)}  ${shortLine(user, 30).padEnd(10)}  ${age.padEnd(14)}  ${about.join(', ')}${named}`;
}

/** What was said in a turn. @param whole all of it, or as much as there is room for in a line. */
export function turnLines({ number, status, waits, exchanges }: TurnView, whole: boolean): readonly string[] {
  const shown = (text: string): readonly string[] =>
    whole ? harmless(text).trimEnd().split('\n') : [shortLine(text, CHARS)];
  const state = waits === true ? 'waits' : status;
  const said = exchanges.flatMap(({ user, assistant }): [string, string][] => [
    ...shown(user).map((line, index): [string, string] => [index === 0 ? '>' : ' ', line]),
    ...(assistant === null || assistant.trim() === ''
      ? []
      : shown(assistant).map((line): [string, string] => [' ', line])),
  ]);
  return said.map(([mark, line], index) => {
    const place = index === 0 ? String(number).padStart(3) : '   ';
    const about = index === 0 && state !== 'finished' ? `  (${state})` : '';
    return `${place}  ${mark} ${line}${about}`.trimEnd();
  });
}

/** @param query the message of its last turn. */
export function branchRow(number: number, query: string, isActive: boolean): string {
  return `${String(number).padStart(3)}  ${isActive ? '*' : ' '} … ${shortLine(query, CHARS)}`;
}
