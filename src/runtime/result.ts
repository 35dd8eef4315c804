/** The result of a run, as far as the run has come. */
import {
  answerText,
  defined,
  type ErrorData,
  type FinishReason,
  type InputArtifact,
  isJsonObject,
  type Json,
  type JsonObject,
  type Scope,
  type Source,
} from '#core';
import { type ArtifactStore, type Journal, storedJsonIfAny } from '#journal';
import { isPaused, missingIn, type OpenPause, pausesOfTasks, type RunState, type RunTotals, saidWith } from '#state';
import { answerOf } from '../calls/large-values.ts';
import { KnownStates } from '../loop/known-states.ts';
import { type MayBeAnswered, withAnswered } from './send-control.ts';

export type RunResult =
  | {
      readonly status: 'finished';
      readonly reason: FinishReason;
      /** The whole answer in words, for a person. Absent when the run gave no words; `reason` and `metadata` say how it ended. */
      readonly answer?: string;
      readonly payload?: Json;
      /** The payload is the reference of the artifact that holds it; `Run.payload` gives the whole. */
      readonly stored?: true;
      readonly metadata?: JsonObject;
      /** What the providers of the run's models say that its replies were written from, each once, in order. Absent: nothing. */
      readonly sources?: readonly Source[];
      /** Files that the run's model has made, in all of its replies; absent when there are none. They are artifacts of the session. */
      readonly files?: readonly InputArtifact[];
      readonly usage: Readonly<RunTotals>;
    }
  | { readonly status: 'failed'; readonly error: ErrorData; readonly usage: Readonly<RunTotals> }
  | {
      readonly status: 'paused';
      readonly pauses: readonly PauseNotice[];
      /** Why the process that wanted to go on last could not, of the run or of a task below whose question is answered. Absent: nothing was wrong. */
      readonly problem?: ErrorData;
      readonly usage: Readonly<RunTotals>;
    };

export interface PauseNotice extends Omit<OpenPause, 'requestedAt'>, MayBeAnswered {
  /** The run that waits: this run, or a task that it waits for. An answer can be given through either of them. */
  readonly run: string;
  /** Absent for a task's. */
  readonly requestedAt?: number;
  /** How many people have still to approve, where more than one has to. */
  readonly missing?: number;
  /** The text of the planner's model when it asked, if there was one. */
  readonly text?: string;
}

/** What a result is completed from. By default the artifacts are those of the journal, and the states are read. */
export interface WholeFrom {
  readonly journal: Journal;
  readonly artifacts?: ArtifactStore;
  readonly states?: Pick<KnownStates, 'of'>;
}

/**
 * The result with the whole answer, and with questions that have the whole arguments, also where these are stored as artifacts. What the
 * store has no more is absent.
 */
export async function wholeResultOf(state: RunState, from: WholeFrom): Promise<RunResult | undefined> {
  const result = runResultOf(state);
  if (result?.status === 'paused') {
    const pauses = await wholePauses(result.pauses, state.identity, from);
    return { ...result, pauses, ...defined({ problem: await problemOf(state.identity.run, pauses, from) }) };
  }
  if (result?.status !== 'finished' || result.stored === undefined) return result;
  return { ...result, ...defined({ answer: await wholeAnswerOf(state, from.artifacts ?? from.journal.artifacts) }) };
}

async function problemOf(
  run: string,
  pauses: readonly PauseNotice[],
  { journal }: WholeFrom,
): Promise<ErrorData | undefined> {
  for (const one of new Set([run, ...pauses.flatMap((pause) => (pause.answered === true ? [pause.run] : []))])) {
    const record = await journal.get(one);
    if (record?.problem !== undefined) return record.problem;
  }
  return undefined;
}

/** What a run has answered, in words; `undefined` for a run that gave none, or whose answer the store has no more. */
export async function wholeAnswerOf(
  { ending, identity }: RunState,
  artifacts: ArtifactStore,
): Promise<string | undefined> {
  return ending?.kind === 'finished' ? answerOf(ending, identity, artifacts) : undefined;
}

/** The pauses, with the arguments of what is asked, and with what is answered already. */
export async function wholePauses(
  pauses: readonly PauseNotice[],
  scope: Scope,
  { journal, artifacts = journal.artifacts, states = new KnownStates(journal) }: WholeFrom,
): Promise<readonly PauseNotice[]> {
  const told = await withAnswered({ journal, states }, pauses);
  return Promise.all(told.map((pause) => (hasStoredArgs(pause) ? withArgs(pause, scope, artifacts) : pause)));
}

/** What a planner puts into a pause of its own is its content, whatever its keys are called. */
function hasStoredArgs({ reason, payload }: PauseNotice): boolean {
  return reason === 'approval_required' && isJsonObject(payload?.['args_stored']);
}

async function withArgs(pause: PauseNotice, scope: Scope, artifacts: ArtifactStore): Promise<PauseNotice> {
  const { args_stored: stored, ...rest } = pause.payload ?? {};
  const args = await storedJsonIfAny(stored, scope, artifacts);
  return args === undefined ? pause : { ...pause, payload: { ...rest, args } };
}

function filesOf({ steps, filesFrom, ending }: RunState): readonly InputArtifact[] | undefined {
  const last = ending?.kind === 'finished' ? ending.files : undefined;
  if (filesFrom === null || steps.every(({ files }) => files === undefined)) return last;
  return [...steps.flatMap(({ files = [] }) => files), ...(last ?? [])];
}

/**
 * The result of a run that has ended or is paused; `undefined` while it is going. It has no answer where that is stored as an
 * artifact.
 */
export function runResultOf(state: RunState): RunResult | undefined {
  const { ending, totals, sources } = state;
  const usage = { ...totals };
  if (ending?.kind === 'failed') return { status: 'failed', error: ending.error, usage };
  if (ending?.kind === 'finished') {
    const { reason, payload, stored, metadata } = ending;
    const answer = stored === undefined ? answerText(payload) : undefined;
    return {
      status: 'finished',
      reason,
      ...defined({ answer }),
      usage,
      ...defined({ payload, stored, metadata, files: filesOf(state) }),
      ...(sources.length > 0 && { sources }),
    };
  }
  if (!isPaused(state)) return undefined;
  const { run } = state.identity;
  const own = state.pauses.map(
    (pause): PauseNotice => ({
      ...pause,
      run,
      ...defined({ text: saidWith(state, pause), missing: missingIn(state, pause) }),
    }),
  );
  return { status: 'paused', pauses: [...own, ...pausesOfTasks(state)], usage };
}
