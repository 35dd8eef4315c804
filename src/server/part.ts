/** What the server is made of: parts with routes of their own, such as a protocol. */
import type { Hono } from 'hono';
import type { Runtime } from '#runtime';
import type { ErrorText } from './problem.ts';
import type { Visit } from './visit.ts';

/** What the routes of a part find in Hono's context: `context.get('visit')`. */
export interface ServerEnv {
  Variables: { visit: Visit };
}

/** What all parts share. */
export interface PartContext {
  readonly runtime: Runtime;
  /** The words for a client about an error that a run has recorded. */
  readonly errorText: ErrorText;
  /** Told of what no client is told. */
  readonly onFault: (error: unknown) => void;
}

/** Routes that are given to `createHandler`. Each is usable alone. */
export interface Part {
  /** A word for it, unique in a server, such as `ai-sdk`. */
  readonly name: string;
  /** Adds its routes, with the paths of the whole server. They are reached only by visitors who were let in. */
  readonly routes: (app: Hono<ServerEnv>, context: PartContext) => void;
  /** Paths that answer without authentication, such as the card of an agent. A path with `*` at its end stands for all that begin so. */
  readonly open?: readonly string[];
}
