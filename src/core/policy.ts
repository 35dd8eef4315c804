/**
 * The policy: a rule of the program's about calls. It is asked about all calls of a plan before the plan runs, and again before
 * each call.
 */
import type { Identity } from './identity.ts';
import type { Json } from './json.ts';

export interface PolicyCall {
  readonly tool: string;
  /** The arguments as the tool will get them. In a plan that is still being made, references to earlier steps are not resolved. */
  readonly args: Json;
  readonly identity: Identity;
}

/** `true` allows the call; a string says why the call is not allowed. A policy that throws allows nothing. */
export type ToolPolicy = (call: PolicyCall, signal: AbortSignal) => true | string | Promise<true | string>;
