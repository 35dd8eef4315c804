/** One decision that was carried out, with what became of it. */
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

/** What a planner's move carries beside the decision. */
export interface MoveNotes {
  /** What the model said beside its calls. */
  readonly text?: string;
  readonly reasoning?: string;
  readonly usage?: Usage;
  /** Opaque to everyone but the provider that made it; sent back to it untouched. */
  readonly providerState?: Json;
  /** Where the move came from: model, prompt version, stop reason. */
  readonly provenance?: JsonObject;
  readonly remarks?: readonly Remark[];
}

/** A call of the run. */
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
  /** The entry that recorded it: a smaller one ended earlier. */
  readonly seq: number;
  /** Tools that the call made known; they are listed from the next step on. */
  readonly discovered?: readonly string[];
  /** What the tool stored on the way, beside its value. */
  readonly artifacts?: readonly ArtifactRow[];
  /** Live handles that the call was the first to use, or found gone. */
  readonly handles?: readonly HandleNote[];
  /** An earlier call of the same tool with the same arguments, whose outcome it took, or under whose idempotency key it was made. */
  readonly reuses?: CallPlace;
}

export interface Step extends MoveNotes {
  readonly index: number;
  readonly decision: Decision;
  /** One record a branch, in branch order; one for a pause, a spawn or an await. */
  readonly calls: readonly CallRecord[];
  /** Arguments that somebody gave to calls in place of those that were decided, as in a plan: with references and escapes. */
  readonly given?: readonly { readonly call: number; readonly args: Json }[];
  /** What kept the calls from running all at once, beside what the decision says. */
  readonly atOnce?: AtOnce;
  /** The error of the step as a whole: a join that was not met, a set-up that was refused, a reply that was no move. */
  readonly error?: ErrorData;
  readonly startedAt: number;
  readonly endedAt: number;
}
