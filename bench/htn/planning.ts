/** A problem file given to the planner: its tables as a state, its todo list as tasks or goals. */
import { createHash } from 'node:crypto';
import { findPlan, type HtnTables, type HtnTask, htnState } from '#planners/htn';
import { DOMAINS } from './domains/index.ts';
import type { Action, Problem, Table, Value } from './problem.ts';

/** Builds a fresh state and plans with it; undefined where there is no plan. */
export type Plan = () => Action[] | undefined;

/** @throws Error with one line for a domain that is not there */
export function planner(problem: Problem): Plan {
  const known = Object.hasOwn(DOMAINS, problem.domain) ? DOMAINS[problem.domain] : undefined;
  if (known === undefined) {
    const names = Object.keys(DOMAINS).join(', ');
    throw new Error(`${problem.name}: unknown domain ${JSON.stringify(problem.domain)}; there are ${names}`);
  }
  const { domain, goals = false } = known;
  const tables = tablesOf(problem);
  const todo = problem.todo.map((item): HtnTask => (goals ? ['goal', ...item] : item));
  // The operators of these domains take names, numbers and booleans, nothing else.
  return () => findPlan(domain, htnState(tables), todo).actions as Action[] | undefined;
}

function tablesOf({ state, goals }: Problem): HtnTables {
  const tables: [string, (readonly [string, Value])[]][] = [];
  for (const [name, table] of Object.entries(state)) tables.push([name, entries(table)]);
  for (const [goal, parts] of Object.entries(goals)) {
    for (const [name, table] of Object.entries(parts)) tables.push([`${goal}.${name}`, entries(table)]);
  }
  return Object.fromEntries(tables);
}

function entries(table: Table): (readonly [string, Value])[] {
  if ('scalar' in table) return [['scalar', table.scalar]];
  return table.map((row) => (typeof row === 'string' ? [row, true] : row));
}

/** The first 16 hexadecimal digits of SHA-256 over the plan as JSON without spaces. */
export function digestOf(plan: readonly Action[]): string {
  return createHash('sha256').update(JSON.stringify(plan)).digest('hex').slice(0, 16);
}
