/** The result of a run as the result of an MCP tool's call. */
import type { Json, JsonObject } from '#core';
import type { PauseNotice, Run, RunResult } from '#runtime';
import { questionOf } from '../pause-words.ts';
import type { ErrorText } from '../problem.ts';

/** The texts that results are made of. */
export interface ResultWords {
  readonly errorText: ErrorText;
  /** Says how a person answers a question of a run. */
  readonly howToAnswer: (question: { readonly run: string; readonly token: string; readonly reason: string }) => string;
}

/** Reasons for the end of a run that are not errors of the call. */
const GOOD = ['goal', 'length', 'handed_over', 'continued'];

/** The result of a call whose run has ended, or waits for somebody whom the client cannot ask. */
export async function toolResult(run: Run, result: RunResult, words: ResultWords): Promise<JsonObject> {
  const runId = run.id;
  if (result.status === 'failed') return resultOf({ runId, status: 'failed' }, words.errorText(result.error), true);
  if (result.status === 'paused') return waitingResult(runId, result.pauses, words);
  const { reason, answer } = result;
  const said = answer ?? textOf(await run.payload());
  const status = reason === 'cancelled' ? 'cancelled' : 'finished';
  const more: JsonObject = {
    ...(said === undefined ? {} : { answer: said }),
    ...(reason === 'goal' ? {} : { reason }),
  };
  return resultOf({ runId, status, ...more }, said ?? `The run has ended (${reason}).`, !GOOD.includes(reason));
}

function textOf(payload: Json | undefined): string | undefined {
  if (payload === undefined || payload === null) return undefined;
  return typeof payload === 'string' ? payload : JSON.stringify(payload);
}

function waitingResult(runId: string, pauses: readonly PauseNotice[], words: ResultWords): JsonObject {
  const waitsFor = pauses.map((pause) => ({ token: pause.token, reason: pause.reason, question: questionOf(pause) }));
  return resultOf({ runId, status: 'waiting', waitsFor }, waitingText(runId, pauses, words), false);
}

/** What the run waits for, and who answers it how. */
export function waitingText(runId: string, pauses: readonly PauseNotice[], { howToAnswer }: ResultWords): string {
  const lines = pauses.map((pause) => {
    const how = howToAnswer({ run: pause.run, token: pause.token, reason: pause.reason });
    return `- ${questionOf(pause)}\n  ${how}`;
  });
  const after = `Once that is answered, the tool run_result with runId ${runId} gives the answer of the run.`;
  return `The run ${runId} is not done: it waits for a person.\n${lines.join('\n')}\n${after}`;
}

function resultOf(structuredContent: JsonObject, text: string, isError: boolean): JsonObject {
  return { content: [{ type: 'text', text }], structuredContent, ...(isError ? { isError } : {}) };
}

/** The result of a call that began nothing. It tells the model how to make a better one. */
export function errorResult(text: string): JsonObject {
  return { content: [{ type: 'text', text }], isError: true };
}

/** Each kind of question has commands of its own. */
export const plainWay: ResultWords['howToAnswer'] = ({ run, token, reason }) =>
  reason === 'approval_required'
    ? `An operator answers it with: pilotage approve ${run} --token ${token} (or reject).`
    : `How an operator answers it (${token}) is said by: pilotage inspect ${run}`;
