/** A decision, and what came of it, in a few words. */
import { branchesOf, type Decision, type Json, type Outcome } from '#core';
import { jsonLine, oneLine, shortArgs } from './text.ts';

const CHARS = 120;

/** A decision that did not pass may have any shape. */
export function decisionText(decision: Decision): string {
  switch (decision.kind) {
    case 'call_tool':
    case 'call_parallel':
      return callsText(branchesOf(decision));
    case 'spawn_task':
      return `starts a task: ${oneLine(String(decision.spec?.description), CHARS)}`;
    case 'await_task':
      return `waits for the task ${oneLine(String(decision.taskId), CHARS)}`;
    case 'request_pause':
      return words('asks', String(decision.reason), decision.payload);
    case 'finish':
      return words('finishes', String(decision.reason), decision.payload);
    default:
      return `${decision satisfies never}` && oneLine(jsonLine(decision), CHARS);
  }
}

function callsText(branches: unknown): string {
  if (!Array.isArray(branches)) return 'calls, which cannot be read';
  return branches
    .map(({ tool, args }: { tool?: unknown; args?: Json }) => words(oneLine(String(tool), 60), shortArgs(args ?? null)))
    .join(', ');
}

function words(...parts: readonly (Json | object | undefined)[]): string {
  return parts
    .filter((part) => part !== undefined && part !== '')
    .map((part) => oneLine(typeof part === 'string' ? part : jsonLine(part), CHARS))
    .join(' ');
}

/** What a call came to. */
export function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'value':
      return oneLine(jsonLine(outcome.value), CHARS);
    case 'verdict':
      return words(outcome.verdict, outcome.payload);
    case 'error':
    case 'unknown':
    case 'cancelled':
    case 'skipped':
      return oneLine(outcome.error.code, 60);
    default:
      return outcome satisfies never;
  }
}
