/** What a run is given beside its query. All of it is recorded when the run starts, so that every request can be rebuilt. */
import type { ArtifactRef } from './artifact.ts';
import type { Json, JsonObject } from './json.ts';

/** Advice to a planner. An absent field is not mentioned to the model. */
export interface PlanningHints {
  readonly constraints?: string;
  /** Tool names in the order in which they are best used. */
  readonly preferredOrder?: readonly string[];
  /** Names of tools that may be called in parallel. */
  readonly parallelGroups?: readonly (readonly string[])[];
  /** How many calls are best made at once. This is advice: more calls are still carried out, up to 50. */
  readonly maxParallel?: number;
  readonly disallowedTools?: readonly string[];
  readonly preferredTools?: readonly string[];
  /** What the work should cost. This is advice; `Limits` bind. */
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

/** An attachment with its bytes. The bytes are absent when it could not be read. */
export interface LoadedInput extends InputArtifact {
  readonly bytes?: Uint8Array;
}

/** A stored value of the session, without its bytes. */
export interface ArtifactRow extends ArtifactRef {
  readonly fileName?: string;
  /** Who made the value: `tool: <name>`, `user`, or `unknown`. */
  readonly source: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

export type ReasoningReplay = 'never' | 'text';

export interface RunContext {
  /** Arguments of a planner that is called like a function, such as the input of a flow. */
  readonly args?: Json;
  /**
   * Data that goes with the arguments, which every tool of the run may read. The key `route_policy` holds choices for a flow's
   * routers.
   */
  readonly meta?: JsonObject;
  readonly hints?: PlanningHints;
  /** Facts from outside the session, such as a user profile: data for the model, never instructions. */
  readonly externalMemory?: Json;
  /** What is known of the session before the turns in `history`. */
  readonly conversationMemory?: Json;
  /** Documents that were looked up for this query. */
  readonly retrieved?: Json;
  /** Skills of the run. The model is shown at most 5; the others are found by search. */
  readonly skills?: readonly Skill[];
  readonly inputs?: readonly InputArtifact[];
  /** The newest artifacts of the session when the run started, and how many more there were. */
  readonly artifacts?: { readonly rows: readonly ArtifactRow[]; readonly more: number };
  /** Replaces the planner's own setting. */
  readonly reasoningReplay?: ReasoningReplay;
}
