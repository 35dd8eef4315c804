/** What a run that has ended could not undo, call by call. */
import { isJsonObject, type Json, type JsonObject } from '#core';
import { type Line, line } from './terminal.ts';
import { count, shortLine } from './text.ts';

/** How many calls of each kind have a line. The ending has all that it names. */
const MOST_SHOWN = 20;

/** @param told the metadata of an ending, or the data of its error. */
export function undoLines(told: JsonObject | undefined): Line[] {
  const report = told?.['undo'];
  if (!isJsonObject(report)) return [];
  return Object.entries(WORDS).flatMap(([name, words]) => {
    const calls = listIn(report[name]);
    const counts = isJsonObject(report['counts']) ? report['counts'] : {};
    const more = Number(counts[name] ?? calls.length) - Math.min(calls.length, MOST_SHOWN);
    const lines = calls.slice(0, MOST_SHOWN).map((call) => line('bad', `  ↩ ${callText(call)} ${words}${whyOf(call)}`));
    return more > 0 ? [...lines, line('bad', `  ↩ ${count(more, 'more call')} ${words}`)] : lines;
  });
}

const WORDS = {
  undo_failed: 'could not be undone',
  left: 'was left as it is',
  unsure: 'may have happened, and was left as it is',
} as const;

function listIn(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each: Json) => isJsonObject(each)) : [];
}

/** People count steps and calls from 1. */
function callText({ tool, step, call }: JsonObject): string {
  return `${shortLine(String(tool), 60)} (call ${Number(call) + 1} of step ${Number(step) + 1})`;
}

function whyOf({ error }: JsonObject): string {
  if (error === undefined || !isJsonObject(error)) return '';
  return `: ${shortLine(String(error['code']), 60)}: ${shortLine(String(error['message']), 160)}`;
}
