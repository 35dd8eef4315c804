/** What a step takes from the arguments of its task: these may come from a tool, through the state, and are values. */
import { asLiteral, capture, isMarked, type Json, jsonEquals, literal } from '#core';
import type { HtnTask } from './domain.ts';
import type { HtnStep } from './work.ts';

/** The step with its input escaped where an object of the task's arguments stands that could be read as a reference. */
export function withTaskValues(step: HtnStep | undefined, [, ...args]: HtnTask): HtnStep | undefined {
  const marked = markedIn(args);
  if (step?.input === undefined || marked.length === 0) return step;
  return { ...step, input: escaped(capture(step.input, 'input').json, marked) };
}

function markedIn(value: Json): readonly Json[] {
  const found: Json[] = [];
  const open: Json[] = [value];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (typeof part !== 'object' || part === null) continue;
    if (isMarked(part)) found.push(part);
    open.push(...Object.values(part));
  }
  return found;
}

function escaped(value: Json, marked: readonly Json[]): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (isMarked(value) && marked.some((part) => jsonEquals(part, value))) return literal(value);
  if (asLiteral(value) !== undefined) return value;
  if (Array.isArray(value)) return value.map((item) => escaped(item, marked));
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, escaped(part, marked)] as const));
}
