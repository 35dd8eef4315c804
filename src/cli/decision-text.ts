/** A decision, and what came of it, in a few words. */
import { branchesOf, type Decision, type Json, type Outcome } from '#core';
import { shortArgs, shortLine, terminalJson } from './text.ts';

const CHARS = 120;

/** A decision that did not pass may have any shape. */
export function decisionText(decision: Decision): string {
  switch (decision.kind) {
    case 'call_tool':
    case 'call_parallel':
      return callsText(branchesOf(decision));
    case 'spawn_task':
      return `starts a task: ${shortLine(String(decision.spec?.description), CHARS)}`;
    case 'await_task':
      return `waits for the task ${shortLine(String(decision.taskId), CHARS)}`;
    case 'request_pause':
      return words('asks', String(decision.reason), decision.payload);
    case 'finish':
      return words('finishes', String(decision.reason), decision.payload);
    default:
      return `${decision satisfies never}` && shortLine(terminalJson(decision), CHARS);
  }
}

function callsText(branches: unknown): string {
  if (!Array.isArray(branches)) return 'calls, which cannot be read';
  return branches
    .map(({ tool, args }: { tool?: unknown; args?: Json }) =>
      words(shortLine(String(tool), 60), shortArgs(args ?? null)),
    )
    .join(', ');
}

function words(...parts: readonly (Json | object | undefined)[]): string {
  return parts
    .filter((part) => part !== undefined && part !== '')
    .map((part) => shortLine(typeof part === 'string' ? part : terminalJson(part), CHARS))
    .join(' ');
}

/** What a call came to. */
export function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'value':
      return shortLine(terminalJson(outcome.value), CHARS);
    case 'verdict':
      return words(outcome.verdict, outcome.payload);
    case 'error':
    case 'unknown':
    case 'cancelled':
    case 'skipped':
      return shortLine(outcome.error.code, 60);
    default:
      return outcome satisfies never;
  }
}
