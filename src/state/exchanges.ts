/**
 * What was said in a run, as turns of its session: what the user asked, and what the run said to it. It is computed from the run's state,
 * and stored nowhere else.
 */
import {
  branchesOf,
  type Control,
  type Finished,
  type FinishReason,
  type InputArtifact,
  isWokenByTasks,
  type JsonObject,
  jsonText,
  messageFiles,
  messageParts,
  type Outcome,
  shownName,
  wordsIn,
} from '#core';
import { wholeText } from './blocked-calls.ts';
import type { OpenPause, RunState } from './state.ts';

export interface Exchange {
  /** The words of the user. What came before the run had said anything belongs to the same exchange. */
  readonly user: string;
  /** Attachments of the words. */
  readonly inputs: readonly InputArtifact[];
  /** What the run said to it, before its answer. */
  readonly said: readonly string[];
  /** Files that the run's model has made for it. */
  readonly files: readonly InputArtifact[];
  /** The answer with which the run ended. Its payload may be the reference of an artifact. */
  readonly answer?: Pick<Finished, 'payload' | 'stored'>;
  /** Set when there is no answer: a sentence that says why not, such as what the run waits for. */
  readonly unanswered?: string;
}

/** The exchanges of a run, oldest first; at least one. */
export function exchangesOf(state: RunState): readonly Exchange[] {
  const talk = new Talk(state);
  const { steps, steering, open, ending } = state;
  let heard = 0;
  for (const step of steps) {
    for (; (steering[heard]?.atStep ?? Infinity) <= step.index; heard += 1)
      talk.hear(wordsOf(steering[heard]?.control), filesOf(steering[heard]?.control));
    talk.make(step.files);
    if (step.decision.kind !== 'request_pause' || step.decision.reason !== 'await_input') continue;
    talk.say(wholeText(state, step.index, step.text));
    const outcome = step.calls[0]?.outcome;
    talk.hear(answerIn(outcome), outcome?.kind === 'verdict' ? messageFiles(outcome.payload) : []);
  }
  for (; heard < steering.length; heard += 1)
    talk.hear(wordsOf(steering[heard]?.control), filesOf(steering[heard]?.control));
  const decision = open?.move.decision;
  talk.make(open?.move.files);
  if (ending?.kind === 'finished') talk.make(ending.files);
  if (open !== null && decision?.kind === 'request_pause' && decision.reason === 'await_input')
    talk.say(wholeText(state, open.move.step, open.move.text));
  return talk.end(ending?.kind === 'finished' && ending.reason === 'goal' ? ending : standingOf(state));
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

class Talk {
  readonly #exchanges: Mutable<Exchange>[];

  constructor({ query, context }: RunState) {
    this.#exchanges = [{ user: query, inputs: context.inputs ?? [], said: [], files: [] }];
  }

  hear(words: string, inputs: readonly InputArtifact[]): void {
    if (words === '' && inputs.length === 0) return;
    const last = this.#last;
    if (last.said.length > 0) {
      this.#exchanges.push({ user: words, inputs, said: [], files: [] });
      return;
    }
    last.user = [last.user, words].filter((text) => text !== '').join('\n\n');
    if (inputs.length > 0) last.inputs = [...last.inputs, ...inputs];
  }

  make(files: readonly InputArtifact[] | undefined): void {
    if (files !== undefined) this.#last.files = [...this.#last.files, ...files];
  }

  say(words: string | undefined): void {
    if (words === undefined || words === '') return;
    this.#last.said = [...this.#last.said, words];
  }

  end(ending: Finished | string | NonNullable<Exchange['answer']>): readonly Exchange[] {
    if (typeof ending !== 'string') this.#last.answer = ending;
    else this.#last.unanswered = ending;
    return this.#exchanges;
  }

  get #last(): Mutable<Exchange> {
    return this.#exchanges.at(-1) as Mutable<Exchange>;
  }
}

const UNANSWERED: Readonly<Partial<Record<FinishReason, string>>> = {
  cancelled: 'It was cancelled.',
  refused: 'The model refused to answer.',
  length: 'The answer did not become whole.',
};

/** Why a run has no answer. */
function standingOf(state: RunState): string {
  const { ending, pauses, tasks } = state;
  if (ending !== null) {
    return (ending.kind === 'finished' ? UNANSWERED[ending.reason] : undefined) ?? 'There is no answer.';
  }
  const waits = [
    ...pauses.map((pause) => waitOf(pause, state)),
    ...tasks.flatMap(({ end, pauses: theirs, description }) =>
      end === undefined && theirs.length > 0 ? [`its task "${description}" waits for a person`] : [],
    ),
  ];
  return `This is not finished: ${waits.length === 0 ? 'it is being worked on' : [...new Set(waits)].join(', and ')}.`;
}

function waitOf({ reason, call }: OpenPause, { open }: RunState): string {
  const tool = call === undefined || open === null ? undefined : branchesOf(open.move.decision)[call]?.tool;
  const of = tool === undefined ? '' : ` of ${shownName(tool)}`;
  switch (reason) {
    case 'await_input':
      return "it waits for the user's next message";
    case 'approval_required':
      return `it waits for an approval${of}`;
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

function filesOf(control: Control | undefined): readonly InputArtifact[] {
  return control?.type === 'USER_MESSAGE' ? messageFiles(control.payload) : [];
}

function wordsOf(control: Control | undefined): string {
  const payload = control?.payload ?? {};
  if (control?.type === 'USER_MESSAGE') return noticed(payload);
  return control?.type === 'REDIRECT' ? jsonText(payload['goal'] ?? '') : '';
}

/** The user did not write a notice, and it must not look as if in a later run either. */
function noticed(payload: JsonObject): string {
  const words = wordsIn(payload);
  return messageParts(payload).notice ? `(A notice, which the user did not write: ${words})` : words;
}

/** What a person said to a pause; empty when nobody said anything. */
function answerIn(outcome: Outcome | undefined): string {
  if (outcome?.kind !== 'verdict' || isWokenByTasks(outcome)) return '';
  const isUnanswered = outcome.verdict === 'timeout' || outcome.verdict === 'superseded';
  return isUnanswered ? '' : noticed(outcome.payload ?? {});
}
