/** What a process keeps of a run beside its state, from one driver to the next. It can all be found again. */
import { type LoadedInput, RunCache } from '#core';
import type { Before } from './earlier-turns.ts';
import { ShownMedia } from './media.ts';

/** What the run was given and does not stand in its entries. */
export interface GivenToRun {
  /** The attachments with their bytes. */
  readonly inputs: readonly LoadedInput[];
  /** `undefined`: the turns stand in the state as they are shown. */
  readonly before: Before | undefined;
}

export class Kept {
  /** What its planner keeps of it, such as the messages of its requests. */
  readonly cache: RunCache = new RunCache();
  readonly media: ShownMedia = new ShownMedia();
  /** Once it was read. */
  given: GivenToRun | undefined;
  /** The newest snapshot that is known to be stored: the entries that it covers, and its blocks. */
  stored: { readonly head: number; readonly blocks: number } = NOTHING_STORED;

  /** The same for a time in which nobody drives the run. Bytes of files, which may be many, are read again then. */
  parked(): Kept {
    const { inputs = [], before } = this.given ?? {};
    const isInTurns = before?.history.some(({ parts }) => parts?.some(({ type }) => type === 'file')) === true;
    const hasFiles = inputs.length > 0 || isInTurns || before?.earlier?.runs.some(({ media }) => media !== undefined);
    if (!hasFiles && this.media.view === undefined) return this;
    const kept = new Kept();
    kept.stored = this.stored;
    return kept;
  }
}

const NOTHING_STORED = Object.freeze({ head: 0, blocks: 0 });
