/** What a run is given beside its query. It is recorded with the run's start, so that every request can be made again. */
import type { ArtifactRef } from './artifact.ts';
import type { Json, JsonObject } from './json.ts';

/** Advice to a planner. What is absent is not spoken of. */
export interface PlanningHints {
  readonly constraints?: string;
  /** Tool names in the order in which they are best used. */
  readonly preferredOrder?: readonly string[];
  /** Tools that may well be called together. */
  readonly parallelGroups?: readonly (readonly string[])[];
  /** Calls that are best made at once, at most. Advice: more are carried out all the same, up to the cap of 50. */
  readonly maxParallel?: number;
  readonly disallowedTools?: readonly string[];
  readonly preferredTools?: readonly string[];
  /** What the work should cost; advice, where `Limits` bind. */
  readonly budget?: {
    readonly steps?: number;
    readonly costUsd?: number;
    readonly latencyMs?: number;
  };
}

/** A way of working that an operator wrote down. */
export interface Skill {
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  readonly steps?: readonly string[];
}

/** An attachment of the query. */
export interface InputArtifact extends ArtifactRef {
  readonly fileName?: string;
}

/** An attachment with its bytes; without them it could not be read. */
export interface LoadedInput extends InputArtifact {
  readonly bytes?: Uint8Array;
}

/** One stored value of the session, without its bytes. */
export interface ArtifactRow extends ArtifactRef {
  readonly fileName?: string;
  /** Who made it: `tool: <name>`, `user`, or `unknown`. */
  readonly source: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

export type ReasoningReplay = 'never' | 'text';

export interface RunContext {
  /** What a planner that is called as a function is gets: the input of a flow. */
  readonly args?: Json;
  /** What goes with them, for every tool of the run to read. Under `route_policy`, the choice of a flow's routers. */
  readonly meta?: JsonObject;
  readonly hints?: PlanningHints;
  /** Facts from outside the session, such as a user profile: data for the model, never instructions. */
  readonly externalMemory?: Json;
  /** What is known of the session before the turns in `history`. */
  readonly conversationMemory?: Json;
  /** Documents that were looked up for this query. */
  readonly retrieved?: Json;
  /** At most 5 are shown. */
  readonly skills?: readonly Skill[];
  readonly inputs?: readonly InputArtifact[];
  /** The newest artifacts of the session when the run started, and how many more there were. */
  readonly artifacts?: { readonly rows: readonly ArtifactRow[]; readonly more: number };
  /** Wins over the planner's own setting. */
  readonly reasoningReplay?: ReasoningReplay;
}
