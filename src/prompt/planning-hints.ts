/** The caller's advice for this run, a line for each thing that is set. */
import { type PlanningHints, shownName } from '#core';
import { jsonLine } from './frame.ts';

export function hintLines(hints: PlanningHints): string[] {
  const { constraints, preferredOrder, parallelGroups, maxParallel, disallowedTools, preferredTools } = hints;
  const groups = (parallelGroups ?? []).filter((group) => group.length > 0).map((group) => names(group, ' + '));
  const budget = budgetParts(hints.budget);
  const lines: string[] = [];
  if (constraints?.trim()) lines.push(`Constraints: ${onOneLine(constraints.trim())}`);
  if (preferredOrder?.length) lines.push(`Preferred order: ${names(preferredOrder, ' -> ')}`);
  if (groups.length > 0) lines.push(`May be called together: ${groups.join('; ')}`);
  if (maxParallel !== undefined) lines.push(`At once: ${maxParallel} calls at most`);
  if (disallowedTools?.length) lines.push(`Do not use: ${names(disallowedTools, ', ')}`);
  if (preferredTools?.length) lines.push(`Preferred tools: ${names(preferredTools, ', ')}`);
  if (budget.length > 0) lines.push(`Budget: ${budget.join(', ')}`);
  return lines;
}

function budgetParts({ steps, costUsd, latencyMs }: NonNullable<PlanningHints['budget']> = {}): string[] {
  const parts: string[] = [];
  if (steps !== undefined) parts.push(`${steps} steps`);
  if (costUsd !== undefined) parts.push(`${costUsd} USD`);
  if (latencyMs !== undefined) parts.push(`${latencyMs} ms`);
  return parts;
}

/** No line of a text may look like a line that Pilotage wrote. */
function onOneLine(text: string): string {
  return /^"|[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) ? jsonLine(text) : text;
}

function names(tools: readonly string[], separator: string): string {
  return tools.map(shownName).join(separator);
}
