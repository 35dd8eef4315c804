/** Decisions, and planners that take them from a list. */
import type { Branch, Decision, Join, Json, Planner, PlannerFunction, RunView } from '#core';
import { type Gate, gate } from './waiting.ts';

export function call(tool: string, args: Json = {}, callId?: string): Decision {
  return { kind: 'call_tool', tool, args, ...(callId === undefined ? {} : { callId }) };
}

export function finish(payload?: Json): Decision {
  return payload === undefined ? { kind: 'finish', reason: 'goal' } : { kind: 'finish', reason: 'goal', payload };
}

/** Waits for somebody to say that it goes on, in whatever way. */
export const pause: Decision = { kind: 'request_pause', reason: 'external_event' };
/** Waits for words of the user. */
export const asks: Decision = { kind: 'request_pause', reason: 'await_input' };

/** The branches of a call, by the names of their tools. */
export const named = (...tools: string[]): Branch[] => tools.map((tool) => ({ tool, args: {} }));

export function parallel(
  branches: readonly Branch[],
  more: { join?: Join; onInvalid?: 'fail_all' | 'per_branch' } = {},
): Decision {
  return { kind: 'call_parallel', branches, ...more };
}

/** Decides what the script says for each step; after its end it finishes. */
export function script(...decisions: readonly Decision[]): PlannerFunction {
  return (run) => decisions[run.trajectory.count] ?? finish('done');
}

/** Says `Hel`, which opens `begun`, and when `more` is opened `lo`. */
export function sayingHello(): { readonly planner: Planner; readonly begun: Gate; readonly more: Gate } {
  const [begun, more] = [gate(), gate()];
  const planner: Planner = {
    name: 'says',
    async *next() {
      yield { type: 'text', text: 'Hel' };
      begun.open();
      await more.opened;
      yield { type: 'text', text: 'lo' };
      return { decision: finish('Hello'), text: 'Hello' };
    },
  };
  return { planner, begun, more };
}

/** Notes every view that the planner was given. */
export function watched(planner: PlannerFunction): PlannerFunction & { readonly views: RunView[] } {
  const views: RunView[] = [];
  return Object.assign(
    (run: RunView, signal: AbortSignal) => {
      views.push(run);
      return planner(run, signal);
    },
    { views },
  );
}
