/** A step: a decision that was carried out, with its outcomes. */
import type { AtOnce } from './at-once.ts';
import type { ArtifactRow } from './context.ts';
import type { Decision } from './decision.ts';
import type { ErrorData } from './errors.ts';
import type { HandleNote } from './handle.ts';
import type { Json, JsonObject } from './json.ts';
import type { Outcome } from './outcome.ts';
import type { Remark } from './remark.ts';
import type { Usage } from './usage.ts';

export type { Usage } from './usage.ts';

/** Notes of a planner's move, beside the decision. */
export interface MoveNotes {
  /** Text of the model beside its calls. */
  readonly text?: string;
  readonly reasoning?: string;
  readonly usage?: Usage;
  /** Opaque to everyone but the provider that made it; sent back to it untouched. */
  readonly providerState?: Json;
  /** Where the move came from: model, prompt version, stop reason. */
  readonly provenance?: JsonObject;
  readonly remarks?: readonly Remark[];
}

/** The place of a call in its run. */
export interface CallPlace {
  readonly step: number;
  readonly call: number;
}

export interface CallRecord {
  readonly outcome: Outcome;
  /** Absent when the call never started. Milliseconds since the epoch, as `endedAt`. */
  readonly startedAt?: number;
  readonly endedAt: number;
  readonly attempts: number;
  /** The position of the entry that recorded the end of the call: a smaller one ended earlier. */
  readonly seq: number;
  /** Tools that the call made known; they are listed from the next step on. */
  readonly discovered?: readonly string[];
  /** What the tool stored on the way, beside its value. */
  readonly artifacts?: readonly ArtifactRow[];
  /** Live handles that the call used first, or found closed. */
  readonly handles?: readonly HandleNote[];
  /** An earlier call of the same tool with the same arguments. This call took its outcome, or was made under its idempotency key. */
  readonly reuses?: CallPlace;
}

export interface Step extends MoveNotes {
  readonly index: number;
  readonly decision: Decision;
  /** One record for each branch, in branch order; a pause, a spawn or an await has one record. */
  readonly calls: readonly CallRecord[];
  /** Arguments that somebody gave to calls in place of those that were decided, as in a plan: with references and escapes. */
  readonly given?: readonly { readonly call: number; readonly args: Json }[];
  /** Limits on how many of the calls ran at once, beside the limit in the decision. */
  readonly atOnce?: AtOnce;
  /** The error of the step as a whole: its join was not met, its set-up was refused, or the planner's reply was not a move. */
  readonly error?: ErrorData;
  readonly startedAt: number;
  readonly endedAt: number;
}
