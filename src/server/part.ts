/** The parts of a server: each has routes of its own, such as those of a protocol. */
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
  /** Makes the text about an error that a run has recorded, for clients. */
  readonly errorText: ErrorText;
  /** Called with errors whose details clients are not told. */
  readonly onFault: (error: unknown) => void;
}

/** A part for `createHandler`. Each works without the others. */
export interface Part {
  /** Its name, unique in a server, such as `ai-sdk`. */
  readonly name: string;
  /** Adds its routes, with their whole paths. Only visitors who were let in reach them. */
  readonly routes: (app: Hono<ServerEnv>, context: PartContext) => void;
  /** Paths that answer without authentication, such as the card of an agent, or whether a path does. Reserved characters of the path are not decoded. */
  readonly open?: readonly string[] | ((path: string) => boolean);
  /** Adds what its clients have to know to the response of `authenticate` that does not let a request in. It gives back those that are not for it. */
  readonly refused?: (request: Request, refusal: Response) => Response;
}
