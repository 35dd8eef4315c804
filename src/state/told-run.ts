/**
 * A run as later runs of its session are told of it: its steps as its own planner saw them, how it stands, and where its user spoke anew.
 * It is computed from the run's state, and stored nowhere else.
 */
import {
  type CallRecord,
  defined,
  type EarlierEnd,
  type EarlierRun,
  type Finished,
  type FinishReason,
  type InputArtifact,
  type Outcome,
  type Step,
  shownName,
  userAnswer,
} from '#core';
import { ShownFiles } from './media.ts';
import { liveIn } from './places.ts';
import { stepsSoFar } from './run-view.ts';
import { hasBegun, type OpenPause, openBranches, type RunState } from './state.ts';

/** What is told of a run, with the references of its files and of an answer that is stored outside of its entries. */
export interface ToldRun extends Pick<EarlierRun, 'run' | 'query' | 'author' | 'notice' | 'trajectory'> {
  readonly inputs: readonly InputArtifact[];
  readonly end: Omit<EarlierEnd, 'answer' | 'files'> & { readonly files?: readonly InputArtifact[] };
  readonly answer?: Pick<Finished, 'payload' | 'stored'>;
  /** The step before which each exchange with the user begins; the first is 0. */
  readonly exchanges: readonly number[];
  /** Files of its steps that are shown, and from which step on those in results are. */
  readonly shown: Pick<ShownFiles, 'from' | 'all'>;
}

export function toldRun(state: RunState): ToldRun {
  const { identity, query, author, notice, context, steps, ending } = state;
  const open = openStep(state);
  const all = open === undefined ? steps : [...steps, open];
  const shown = new ShownFiles();
  shown.readOn({ ...state, steps: all });
  return {
    run: identity.run,
    query,
    ...(author === null ? {} : { author }),
    ...(notice ? { notice } : {}),
    inputs: context.inputs ?? [],
    trajectory: stepsSoFar(open === undefined ? state : { ...state, steps: all }),
    ...(ending?.kind === 'finished' && ending.reason === 'goal' ? { answer: ending } : {}),
    end: endOf(state),
    exchanges: [0, ...steps.flatMap((step) => (userAnswer(step) === '' ? [] : [step.index + 1]))],
    shown,
  };
}

function endOf(state: RunState): ToldRun['end'] {
  const { ending, open, reply } = state;
  if (ending?.kind === 'finished') {
    const { reason, files } = ending;
    const made = { ...reply, ...(files === undefined ? {} : { files }) };
    return reason === 'goal' ? made : { ...made, unanswered: UNANSWERED[reason] ?? NO_ANSWER };
  }
  const unanswered = ending === null ? standingOf(state) : NO_ANSWER;
  if (open?.move.decision.kind !== 'request_pause') return { unanswered };
  const { text, reasoning, providerState, files } = open.move;
  return { unanswered, ...defined({ text, reasoning, providerState, files }) };
}

/** The step whose calls have not all ended. A question to the user does not count: what it says is how the run stands. */
function openStep(state: RunState): Step | undefined {
  const { open } = state;
  if (open === null || open.move.decision.kind === 'request_pause') return undefined;
  const { step: index, decision, startedAt, text, reasoning, providerState, provenance, files } = open.move;
  const calls = open.calls.map((record, call): CallRecord => {
    return record ?? { outcome: openOutcome(state, call), endedAt: state.updatedAt, attempts: 0, seq: state.head };
  });
  return Object.freeze({
    ...{ index, decision, calls: Object.freeze(calls), startedAt, endedAt: state.updatedAt },
    ...defined({ text, reasoning, providerState, provenance, files }),
  });
}

function openOutcome(state: RunState, call: number): Outcome {
  const { open, pauses, ending } = state;
  const pause = pauses.find((one) => one.call === call);
  const mayHaveBegun = open !== null && hasBegun(open, call);
  if (pause?.reason === 'in_doubt' || (ending !== null && mayHaveBegun)) {
    return { kind: 'unknown', error: { code: 'call_in_doubt', message: 'Nobody knows yet whether it has happened.' } };
  }
  const message =
    pause !== undefined
      ? `It has not been made yet: ${waitOf(pause, state)}.`
      : ending !== null
        ? 'It had no result when its turn ended.'
        : 'It has no result yet: that turn is not finished.';
  return { kind: 'error', error: { code: 'call_open', message } };
}

const NO_ANSWER = 'There is no answer.';
const UNANSWERED: Readonly<Partial<Record<FinishReason, string>>> = {
  cancelled: 'It was cancelled.',
  refused: 'The model refused to answer.',
  length: 'The answer did not become whole.',
  handed_over: 'Another agent goes on with it.',
  continued: 'It goes on.',
};

/** What a run that has not ended waits for. */
function standingOf(state: RunState): string {
  const { pauses, tasks } = state;
  const waits = [
    ...pauses.map((pause) => waitOf(pause, state)),
    ...liveIn(tasks).flatMap(({ pauses: theirs, description }) =>
      theirs.length > 0 ? [`its task "${description}" waits for a person`] : [],
    ),
  ];
  return `This is not finished: ${waits.length === 0 ? 'it is being worked on' : [...new Set(waits)].join(', and ')}.`;
}

function waitOf({ reason, call }: OpenPause, state: RunState): string {
  const tool = call === undefined ? undefined : openBranches(state)[call]?.tool;
  const of = tool === undefined ? '' : ` of ${shownName(tool)}`;
  switch (reason) {
    case 'await_input':
      return "it waits for the user's next message";
    case 'approval_required':
      return `it waits for an approval${of}`;
    case 'client_tool':
      return `it waits for a client to carry out a call${of}`;
    case 'in_doubt':
      return `it waits for somebody who knows what became of a call${of}`;
    case 'model_unavailable':
      return 'it waits for its model';
    case 'context_exhausted':
      return 'it waits for a model with a larger window';
    default:
      return 'it waits for a person';
  }
}
