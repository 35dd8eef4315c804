/** A task as a stream: first the whole task, then its news, from the journal and from the process that carries it out. */
import type { RunEvent } from '#core';
import { answerArtifact, type TaskSeen, type TaskSource, viewTask } from './task.ts';
import {
  type A2aPart,
  type A2aTaskStatus,
  type Artifact,
  isInterrupted,
  isTerminal,
  type StreamResponse,
} from './wire.ts';

/**
 * Ends when the task has ended or asks something. When the task asks something already, the stream goes on until it asks the next time.
 * @param signal is aborted when the reader is gone.
 */
export async function* streamTask(
  source: TaskSource,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<StreamResponse, void> {
  const view = await viewTask(source, id);
  const { task, run, state } = view;
  yield { task };
  if (isTerminal(task.status.state)) return;
  let from = state.head + 1;
  if (isInterrupted(task.status.state)) {
    for await (const { seq } of run.events({ from, overPauses: true, signal })) {
      from = seq;
      break;
    }
  }
  if (signal.aborted) return;
  const teller = new Teller(view);
  for await (const event of run.events({ from, signal })) yield* teller.tell(event);
  if (signal.aborted) return;
  const { task: last } = await viewTask(source, id);
  yield* teller.end(last.artifacts ?? [], last.status);
}

/** What a reader of the stream has been told so far. */
class Teller {
  readonly #of: { readonly taskId: string; readonly contextId: string };
  #state: string;
  /** The words that the reader has, and the step that says them. */
  #shown: { readonly step: string; readonly text: string } | undefined;

  constructor({ task, state, said }: TaskSeen) {
    this.#of = { taskId: task.id, contextId: task.contextId };
    this.#state = task.status.state;
    this.#shown = said && { step: stepKey(state.identity.run, said.step), text: said.text };
  }

  *tell(event: RunEvent): Generator<StreamResponse> {
    switch (event.type) {
      case 'token':
        yield* this.#working(event);
        if (event.channel === 'text') yield* this.#piece(keyOf(event), event.text, event.offset);
        return;
      case 'token.reset':
        if (this.#shown?.step === keyOf(event)) yield this.#words(keyOf(event), '', false);
        return;
      case 'planner.decision':
        yield* this.#working(event);
        yield* this.#decided(keyOf(event), event.text ?? '');
        return;
      case 'pause.resumed':
      case 'task.resumed':
        yield* this.#working(event);
        return;
      default:
    }
  }

  *end(artifacts: readonly Artifact[], status: A2aTaskStatus): Generator<StreamResponse> {
    const shown = this.#shown && JSON.stringify(answerArtifact([{ text: this.#shown.text }]));
    const isOver = isTerminal(status.state);
    for (const artifact of artifacts) {
      if (JSON.stringify(artifact) !== shown)
        yield { artifactUpdate: { ...this.#of, artifact, ...(isOver && { lastChunk: true }) } };
    }
    // What was shown before a call is not the answer of a task that comes to its goal without one. Nor is what was not recorded.
    const isLeft = isOver && this.#shown !== undefined && artifacts.every(({ name }) => name !== 'answer');
    if (isLeft && this.#shown?.text !== '') yield this.#words('', '', false);
    yield { statusUpdate: { ...this.#of, status } };
  }

  *#working({ occurredAt }: RunEvent): Generator<StreamResponse> {
    if (this.#state === 'TASK_STATE_WORKING') return;
    this.#state = 'TASK_STATE_WORKING';
    const status: A2aTaskStatus = { state: 'TASK_STATE_WORKING', timestamp: new Date(occurredAt).toISOString() };
    yield { statusUpdate: { ...this.#of, status } };
  }

  *#piece(step: string, text: string, offset: number): Generator<StreamResponse> {
    const has = this.#shown?.step === step ? this.#shown.text.length : 0;
    // Words that are missing before this part come with the decision of the step.
    if (offset > has) return;
    const more = text.slice(has - offset);
    if (more !== '') yield this.#words(step, more, this.#shown?.step === step && has > 0);
  }

  /** Tells the recorded words of a step to a reader that came late or has missed some. */
  *#decided(step: string, text: string): Generator<StreamResponse> {
    if (text === '' || (this.#shown?.step === step && this.#shown.text === text)) return;
    yield this.#words(step, text, false);
  }

  #words(step: string, text: string, append: boolean): StreamResponse {
    this.#shown = { step, text: append ? `${this.#shown?.text ?? ''}${text}` : text };
    const parts: readonly A2aPart[] = [{ text }];
    return { artifactUpdate: { ...this.#of, artifact: answerArtifact(parts), ...(append && { append: true }) } };
  }
}

function keyOf(event: RunEvent & { readonly step: number }): string {
  return stepKey(event.identity.run, event.step);
}

function stepKey(run: string, step: number): string {
  return `${run}/${step}`;
}
