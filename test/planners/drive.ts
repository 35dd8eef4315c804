/** Drives a planner by hand: what a runtime would make of its moves, without one. */
import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { type Branch, branchesOf } from '../../src/core/decision.ts';
import type { ErrorData } from '../../src/core/errors.ts';
import type { Json } from '../../src/core/json.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import { type Delta, isMove, type Move, type Planner, type RunView } from '../../src/core/planner.ts';
import type { Step } from '../../src/core/step.ts';

const never = new AbortController().signal;

export async function ask(planner: Planner, view: RunView, signal: AbortSignal = never): Promise<Move> {
  return (await listen(planner, view, signal)).move;
}

export async function listen(
  planner: Planner,
  view: RunView,
  signal: AbortSignal = never,
): Promise<{ move: Move; deltas: Delta[] }> {
  const deltas: Delta[] = [];
  let source = planner.next(view, signal);
  if (Symbol.asyncIterator in source) {
    let next = await source.next();
    for (; !next.done; next = await source.next()) deltas.push(next.value);
    source = next.value;
  }
  const made = await source;
  return { move: isMove(made) ? made : { decision: made }, deltas };
}

export const value = (json: Json): Outcome => ({ kind: 'value', value: json });
export const failure = (code: string, message: string): Outcome => ({ kind: 'error', error: { code, message } });

/** The step that a move becomes, as it comes back from a journal. Default: every call that was not refused gave `"done"`. */
export function stepOf(index: number, made: Move, outcomes?: readonly Outcome[], rejected?: ErrorData): Step {
  const { fault, ...move } = made;
  const error = rejected ?? fault;
  const branches = error === undefined ? branchesOf(move.decision) : [];
  const slots = error !== undefined ? 0 : branches.length || 1;
  const calls = Array.from({ length: slots }, (_, call) => ({
    outcome: refusalOf(branches[call]) ?? outcomes?.[call] ?? value('done'),
    startedAt: 0,
    endedAt: 1,
    attempts: 1,
    seq: index * 10 + call,
  }));
  const step = { index, ...move, calls, startedAt: 0, endedAt: 1, ...(error === undefined ? {} : { error }) };
  return JSON.parse(JSON.stringify(step)) as Step;
}

function refusalOf(branch: Branch | undefined): Outcome | undefined {
  return branch?.refusal === undefined ? undefined : { kind: 'error', error: branch.refusal };
}

export function texts(prompt: LanguageModelV4Prompt, role: LanguageModelV4Message['role']): string[] {
  return prompt.flatMap((message) => {
    if (message.role !== role) return [];
    if (typeof message.content === 'string') return [message.content];
    return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  });
}

/** The results of the last tool message. */
export function lastResults(prompt: LanguageModelV4Prompt): unknown[] {
  const last = prompt.findLast((message) => message.role === 'tool');
  return (last?.content as { output: unknown }[] | undefined)?.map((part) => part.output) ?? [];
}
