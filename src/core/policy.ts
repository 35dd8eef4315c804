/** A rule of the program's about calls: asked before a plan runs about all of them, and before each call is made. */
import type { Identity } from './identity.ts';
import type { Json } from './json.ts';

export interface PolicyCall {
  readonly tool: string;
  /** As the tool will get them. Of a plan that is only being made, with its references to earlier steps. */
  readonly args: Json;
  readonly identity: Identity;
}

/** `true` allows the call; a text says why it is not allowed. One that throws allows nothing. */
export type ToolPolicy = (call: PolicyCall, signal: AbortSignal) => true | string | Promise<true | string>;
