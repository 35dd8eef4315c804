/** What is played of conversations: sessions into which schedules send, and what people say and do in them meanwhile. */
import type { Scope } from '#core';
import type { BusyMode } from '#runtime';

export interface TalkPlay {
  readonly sessions: readonly Scope[];
  readonly acts: readonly TalkAct[];
}

interface InTalk {
  readonly at: number;
  readonly worker: number;
  /** Which of the sessions. */
  readonly talk: number;
}

/** A message. Whoever sends it asks until it was accepted or refused. */
export interface Say extends InTalk {
  readonly does: 'say';
  readonly id: string;
  readonly busy: BusyMode;
  readonly plan: string;
  /** Another worker is asked for the same too, so much later. */
  readonly twin?: { readonly worker: number; readonly afterMs: number };
  /** What its turn has done is undone when it does not reach its goal. */
  readonly undoes?: true;
}

/** `turn`: which of those that the session has had, counted round. */
export type TalkAct =
  | Say
  | (InTalk & {
      readonly does: 'edit';
      readonly id: string;
      readonly busy: BusyMode;
      readonly plan: string;
      readonly turn: number;
    })
  | (InTalk & {
      readonly does: 'regenerate';
      readonly id: string;
      readonly busy: BusyMode;
      readonly turn: number;
    })
  | (InTalk & { readonly does: 'switch' | 'drop' | 'answer' | 'write'; readonly turn: number })
  | (InTalk & { readonly does: 'fork'; readonly turn: number; readonly run: string })
  | (InTalk & { readonly does: 'cancel'; readonly waiting: boolean })
  | (InTalk & { readonly does: 'delete' });
