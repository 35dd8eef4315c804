/** Two runs side by side, as a diff: what both did, what only the first did (-), what only the second did (+). */
import type { Outcome } from '#core';
import type { RunComparison, RunSummary, StepPair, StepSummary } from '#state';
import { decisionText, outcomeText } from './decision-text.ts';
import { type Line, line } from './line.ts';
import { count, dollars, shortLine, terminalJson } from './text.ts';

export function diffLines(comparison: RunComparison): Line[] {
  const { a, b, steps, sameEnding } = comparison;
  return [
    line('strong', `- ${heading(a)}`),
    line('strong', `+ ${heading(b)}`),
    ...steps.flatMap(stepLines),
    ...(sameEnding
      ? [line('quiet', `  ${endText(a)}`)]
      : [line('bad', `- ${endText(a)}`), line('good', `+ ${endText(b)}`)]),
    line('plain', `  cost    ${costText(a)} → ${costText(b)}`),
  ];
}

function heading({ run, agent, goal }: RunSummary): string {
  return `${run}  ${shortLine(agent, 60)}: ${shortLine(goal, 120)}`;
}

function stepLines({ index, verdict, changes, a, b }: StepPair): Line[] {
  if (verdict === 'same' && a !== undefined) return [line('quiet', `  ${stepText(index, a)}`)];
  const outcome = changes.includes('outcome') || changes.length === 0;
  return [
    ...(a === undefined ? [] : [line('bad', `- ${stepText(index, a, outcome)}`)]),
    ...(b === undefined ? [] : [line('good', `+ ${stepText(index, b, outcome)}`)]),
  ];
}

/** @param withOutcome what the calls came to differs, too, or the other run has no such step. */
function stepText(index: number, { decision, outcomes, error }: StepSummary, withOutcome: boolean = false): string {
  const words = [`step ${index + 1}  ${decisionText(decision)}`];
  if (error !== undefined) words.push(shortLine(error, 60));
  else if (withOutcome && outcomes.length > 0) words.push(outcomesText(outcomes));
  return words.join('  → ');
}

function outcomesText(outcomes: readonly Outcome[]): string {
  return shortLine(outcomes.map(outcomeText).join(', '), 160);
}

function endText({ ending }: RunSummary): string {
  if (ending === null) return 'not ended';
  if (ending.kind === 'failed') return `failed: ${shortLine(ending.error.code, 60)}`;
  const { reason, payload } = ending;
  return payload === undefined ? `ended: ${reason}` : `ended: ${reason} ${shortLine(terminalJson(payload), 160)}`;
}

function costText({ totals }: RunSummary): string {
  const { steps, calls, inputTokens, outputTokens, costMicroUsd } = totals;
  const tokens = inputTokens + outputTokens;
  const words = [count(steps, 'step'), count(calls, 'call')];
  if (tokens > 0) words.push(`${tokens.toLocaleString('en')} tokens`);
  if (costMicroUsd > 0) words.push(dollars(costMicroUsd));
  return words.join(', ');
}
