/**
 * The files that a run has come to on its way: those in results of its calls, those that its model has made, and those of messages and answers. Which of
 * them a planner is shown.
 */
import {
  answerFiles,
  type Compaction,
  type InputArtifact,
  messageFiles,
  type ResultFile,
  resultFilesOf,
  type SteeringTurn,
  type Step,
} from '#core';
import type { RunState } from './state.ts';

/**
 * So many files of results stay, the newest. Only when there are more than twice as many do the older ones leave, in one go: a provider's
 * cache reads everything before the first that left, and everything at the other steps.
 */
const KEPT_FILES = 8;

/** Depends on the steps alone, and on nothing that a process knows: a restart shows the same files. */
export class ShownFiles {
  #seen = 0;
  #last: Step | undefined;
  #compaction: Compaction | null = null;
  /** The steps of which the files in results are shown, oldest first. */
  #kept: { readonly step: number; readonly files: readonly ResultFile[] }[] = [];
  #count = 0;
  #from = 0;
  #made: InputArtifact[] = [];
  /** Attachments of messages, which stay as the words do, and how many messages were looked at. */
  readonly #said: InputArtifact[] = [];
  #heard = 0;

  /** Files in the results of steps before this one are old. */
  get from(): number {
    return this.#from;
  }

  get all(): readonly InputArtifact[] {
    return [...this.#said, ...this.#made, ...this.#kept.flatMap(({ files }) => files)];
  }

  /** Reads on in the steps. @returns whether other files are shown now. */
  readOn({
    steps,
    compaction,
    filesFrom,
    steering,
  }: Pick<RunState, 'steps' | 'compaction' | 'filesFrom' | 'steering'>): boolean {
    let isOther = this.#heard < steering.length && this.#hear(steering);
    if (filesFrom === null) {
      // A summary has no files to take away.
      this.#compaction = compaction;
      return isOther;
    }
    // A step may be opened again, or its results become previews; a summary stands in place of steps.
    if (compaction !== this.#compaction || (this.#seen > 0 && steps[this.#seen - 1] !== this.#last)) {
      isOther ||= this.#kept.length + this.#made.length > 0;
      this.#compaction = compaction;
      this.#seen = Math.max(compaction?.before ?? 0, filesFrom);
      this.#kept = [];
      this.#made = [];
      this.#count = 0;
      this.#from = 0;
    }
    this.#seen = Math.max(this.#seen, filesFrom);
    for (; this.#seen < steps.length; this.#seen += 1) if (this.#add(steps[this.#seen] as Step)) isOther = true;
    this.#last = steps[this.#seen - 1];
    return isOther;
  }

  #hear(steering: readonly SteeringTurn[]): boolean {
    const before = this.#said.length;
    for (; this.#heard < steering.length; this.#heard += 1) {
      const { type, payload } = (steering[this.#heard] as SteeringTurn).control;
      if (type === 'USER_MESSAGE') this.#said.push(...messageFiles(payload));
    }
    return this.#said.length > before;
  }

  #add(step: Step): boolean {
    if (step.files !== undefined) this.#made.push(...step.files);
    if (step.decision.kind === 'request_pause') return this.#answered(step);
    const files = resultFilesOf(step);
    if (files.length === 0) return step.files !== undefined;
    this.#kept.push({ step: step.index, files });
    this.#count += files.length;
    if (this.#count <= 2 * KEPT_FILES) return true;
    for (;;) {
      const [oldest, next] = this.#kept;
      if (oldest === undefined || next === undefined || this.#count - oldest.files.length < KEPT_FILES) return true;
      this.#count -= oldest.files.length;
      this.#from = next.step;
      this.#kept.shift();
    }
  }

  #answered(step: Step): boolean {
    const given = answerFiles(step);
    this.#said.push(...given);
    return step.files !== undefined || given.length > 0;
  }
}
