/** What a planner may know of a tool: never its function. */
import type { JsonObject } from './json.ts';
import type { ToolPolicy } from './policy.ts';

/**
 * What a call may do to the world, which decides what happens after a crash in the middle of it.
 * - `pure`, `read`: the call runs again.
 * - `keyed`: the call runs again with the same idempotency key.
 * - `once`: the call never runs again by itself; the tool's `reconcile` is asked, and a person settles what it cannot tell.
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
  /** Media types of artifacts that the tool reads, such as `text/*`. Absent: the tool reads none. */
  readonly mimeTypes?: readonly string[];
  /** Arguments that show how the tool is used, the plainest first. */
  readonly examples: readonly JsonObject[];
}

/** The tools that this run's identity may use. Another tool's name gives the same answer as a name nobody knows. */
export interface ToolView {
  /**
   * The listed tools: first those that are always listed, sorted by name, then tools found during the run. The array stays the
   * same object as long as nothing changes.
   */
  list(): readonly ToolSchema[];
  /** All tools, deferred ones included, sorted by name. */
  all(): readonly ToolSchema[];
  get(name: string): ToolSchema | undefined;
  /** The program's policy about calls, for planners that look ahead. The policy is asked again when a call is made. */
  readonly policy?: ToolPolicy;
}
