/** What a planner may know of a tool: never its function. */
import type { JsonObject } from './json.ts';
import type { ToolPolicy } from './policy.ts';

/**
 * What a call may do to the world, which decides what happens after a crash in the middle of it.
 * - `pure`, `read`: it runs again.
 * - `keyed`: it runs again with the same idempotency key.
 * - `once`: it never runs again unasked; its `reconcile` is asked, and what that cannot say somebody settles.
 */
export type Effect = 'pure' | 'read' | 'keyed' | 'once';

export type Loading = 'always' | 'deferred';

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonObject;
  readonly effect: Effect;
  readonly tags: readonly string[];
  /** A deferred tool is listed only once the run has found it; it may be called before. */
  readonly loading: Loading;
  /** Media types of artifacts that it reads, such as `text/*`; absent: it reads none. */
  readonly mimeTypes?: readonly string[];
  /** Arguments that show how the tool is used, the plainest first. */
  readonly examples: readonly JsonObject[];
}

/** The tools that this run's identity may use. Another tool's name gives the same answer as a name nobody knows. */
export interface ToolView {
  /** Sorted by name, then those found during the run; the same array as long as nothing changes. */
  list(): readonly ToolSchema[];
  /** All of them, the deferred ones too, sorted by name. */
  all(): readonly ToolSchema[];
  get(name: string): ToolSchema | undefined;
  /** The program's rule about calls, for planners that look ahead. It is asked again when a call is made. */
  readonly policy?: ToolPolicy;
}
