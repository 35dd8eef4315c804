/**
 * Calls that may have changed something. A model writes a summary and may leave such a call out, and the call, made again, would change
 * something twice. So Pilotage itself lists the calls of summarised steps, as they were recorded.
 */
import { type Outcome, SPAWN_TOOL, type Step, shownName, type ToolView } from '#core';
import { jsonLine } from './frame.ts';
import { asText, errorText } from './outcome-text.ts';
import { callsOf } from './step-parts.ts';

/** Whether the tool may change something. An unknown name is not such a tool. */
export function isAct(tool: string, tools: ToolView): boolean {
  const effect = tools.get(tool)?.effect;
  return effect === 'once' || effect === 'keyed' || tool === SPAWN_TOOL;
}

/** A call that failed was not made, and a call that was skipped did not begin. */
export function mayHaveHappened({ kind }: Outcome): boolean {
  return kind === 'value' || kind === 'unknown' || kind === 'cancelled';
}

export interface ActLine {
  readonly text: string;
  /** True: nobody knows whether the call happened. */
  readonly isOpen: boolean;
}

/** A line for each such call of a step, as data. */
export function actLines(step: Step, tools: ToolView): ActLine[] {
  return callsOf(step).flatMap(({ tool, args, outcome }) => {
    if (outcome === undefined || !mayHaveHappened(outcome)) return [];
    if (outcome.kind !== 'unknown' && !isAct(tool, tools)) return [];
    const call = `${shownName(tool)} ${short(jsonLine(args), MAX_ARGS)}`;
    const text = `step ${step.index + 1}: ${call} → ${cameOf(outcome)}`;
    return [{ text, isOpen: outcome.kind !== 'value' }];
  });
}

const MAX_ARGS = 300;
const MAX_RESULT = 200;
/** How many calls with a known outcome are shown, the newest ones. */
const MAX_LINES = 50;

/** All calls with an unknown outcome, and the newest of the others. */
export function shownActs(lines: readonly ActLine[]): string[] {
  const known = lines.filter(({ isOpen }) => !isOpen);
  const left = new Set(known.slice(0, Math.max(0, known.length - MAX_LINES)));
  const shown = lines.filter((line) => !left.has(line)).map(({ text }) => `- ${text}`);
  return left.size === 0 ? shown : [`- ${left.size} calls before these`, ...shown];
}

/** The outcome of such a call, in one line of data. A value stands in quotation marks, and cannot pass for one of the other endings. */
export function cameOf(outcome: Outcome): string {
  const said = short(saidOf(outcome).replaceAll(/\s+/g, ' '), MAX_RESULT);
  return outcome.kind === 'value' ? jsonLine(said) : said;
}

function saidOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'value':
      return asText(outcome.value);
    case 'unknown':
      return `unknown whether it happened (${errorText(outcome.error)})`;
    case 'cancelled':
      return `stopped, and may have happened (${errorText(outcome.error)})`;
    default:
      return outcome.kind;
  }
}

function short(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars).toWellFormed()}…`;
}
