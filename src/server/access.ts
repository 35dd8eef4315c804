/** Who asks: what a program says of a request once it has authenticated it, and what that lets the request do. */
import { assertIdentity, assertWords, CONTROL_SCOPES, type ControlScope } from '#core';
import type { RunRecord } from '#journal';

/** What a request does: look, begin something, answer what is asked, stop or steer, or change what is everybody's (schedules, signals, deleting). */
export const ACTIONS = ['read', 'start', 'answer', 'control', 'manage'] as const;
export type Action = (typeof ACTIONS)[number];

/** What a request is about. Absent parts are not known, or there is none. */
export interface Subject {
  /** The agent that a run is of, or that is to be started. */
  readonly agent?: string;
  readonly session?: string;
  /** The run, as the journal lists it. */
  readonly run?: RunRecord;
}

/** A visitor of the server. */
export interface Access {
  /** Whose runs and sessions the request starts and finds. Those of others are not there for it. With `session` it reaches that session alone. */
  readonly identity: { readonly tenant: string; readonly user: string; readonly session?: string };
  /** What the visitor may do to runs, as `Caller.scope`. An `admin` reaches every run of the journal. Default `owner_user`. */
  readonly as?: ControlScope;
  /** Scopes that the user holds, for tools that need some: runs that the visitor starts have them. Default none. */
  readonly scopes?: readonly string[];
  /** A function that allows less: what it says no to is `forbidden`, or not found where the visitor may not read. Default: all is allowed. */
  readonly may?: (action: Action, subject: Subject) => boolean | Promise<boolean>;
}

/**
 * Says who asks, before anything else happens. A `Response` is the answer in place of ours, such as a 401 with its `www-authenticate`; what it throws is
 * answered as 500, and told to `onFault`. `env` is what the surroundings give beside the request.
 */
export type Authenticate = (request: Request, env?: unknown) => Access | Response | Promise<Access | Response>;

/**
 * Whoever has no name would reach what is everybody's.
 * @throws PilotageError `identity_required`, `invalid_config`.
 */
export function assertAccess(access: Access | undefined): asserts access is Access {
  const { tenant, user, session = '-' } = (access?.identity ?? {}) as Partial<Access['identity']>;
  assertIdentity({ ...(tenant !== undefined && { tenant }), ...(user !== undefined && { user }), session, run: '-' });
  if (access?.as !== undefined) assertWords('authenticate', 'as', [access.as], CONTROL_SCOPES);
}
