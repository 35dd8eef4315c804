/** Holds the run that came out against the recording. */
import { isDeepStrictEqual } from 'node:util';
import { branchesOf, type Step } from '#core';
import type { RunState } from '#state';
import { type RecordedTurn, type Recording, readArguments } from './recording.ts';

/** A sentence for each difference. */
export function differences({ turns }: Recording, state: RunState): string[] {
  const found = turns.flatMap((turn, index) => {
    // The last text may be what the run still waits for an answer to.
    const step = state.steps[index] ?? openStep(state, index);
    return step === undefined ? [`step ${index} is missing`] : stepDifferences(turn, step, index);
  });
  if (state.steps.length > turns.length) found.push(`the run has ${state.steps.length - turns.length} steps more`);
  return [...found, ...endingDifferences(turns.at(-1), state)];
}

type Said = Pick<Step, 'decision' | 'text' | 'calls'>;

function openStep({ open }: RunState, index: number): Said | undefined {
  if (open?.move.step !== index) return undefined;
  const { decision, text } = open.move;
  return { decision, calls: [], ...(text === undefined ? {} : { text }) };
}

function stepDifferences(turn: RecordedTurn, { decision, text = '', calls }: Said, index: number): string[] {
  if (text !== turn.text) return [`the text of step ${index} is not the recorded one`];
  const called = branchesOf(decision).map(({ tool, args }) => ({ tool, args }));
  const recorded = turn.calls.map(({ tool, input }) => ({ tool, args: readArguments(input) }));
  if (!isDeepStrictEqual(called, recorded)) return [`the calls of step ${index} are not the recorded ones`];
  const results = calls.map(({ outcome }) => {
    if (outcome.kind === 'value') return outcome.value;
    return outcome.kind === 'verdict' ? outcome.payload?.['message'] : { [outcome.kind]: outcome.error.code };
  });
  const expected = turn.calls.length > 0 ? turn.calls.map(({ result }) => result) : answersOf(turn);
  return isDeepStrictEqual(results, expected)
    ? []
    : [`the results of step ${index} are not the recorded ones: ${JSON.stringify(results).slice(0, 200)}`];
}

function answersOf({ answer }: RecordedTurn): string[] {
  return answer === undefined ? [] : [answer];
}

/** Stopped by the limit of steps after a result or an answer; waiting for an answer after a text. */
function endingDifferences(last: RecordedTurn | undefined, { ending, pauses }: RunState): string[] {
  const waits = last !== undefined && last.calls.length === 0 && last.answer === undefined;
  if (waits) return ending === null && pauses.length === 1 ? [] : ['the run does not wait for the next answer'];
  if (ending?.kind === 'failed') return [`the run failed: ${ending.error.message}`];
  const isStopped = ending?.reason === 'max_steps' && ending.metadata?.['max_steps_exceeded'] === true;
  return isStopped ? [] : [`the run ended with ${ending?.reason ?? 'nothing'} in place of its limit of steps`];
}

/** Turns of several calls, and how many of them ended in another order than they were called in. */
export function parallelTurns({ steps }: RunState): { readonly turns: number; readonly outOfOrder: number } {
  const parallel = steps.filter(({ calls }) => calls.length > 1);
  const outOfOrder = parallel.filter(({ calls }) =>
    calls.some(({ seq }, index) => index > 0 && seq < (calls[index - 1]?.seq ?? 0)),
  );
  return { turns: parallel.length, outOfOrder: outOfOrder.length };
}
