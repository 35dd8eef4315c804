/** What a program says of a request once it has authenticated it: who sends it, and what it may do. */
import { assertIdentity, assertOptions, assertTexts, assertWords, CONTROL_SCOPES, type ControlScope } from '#core';
import type { RunRecord } from '#journal';

/** What a request does: read, start something, answer a question, stop or steer a run, or change what concerns everybody (schedules, signals, deleting). */
export const ACTIONS = ['read', 'start', 'answer', 'control', 'manage'] as const;
export type Action = (typeof ACTIONS)[number];

/** What a request is about. A field is absent when it is not known or does not apply. */
export interface Subject {
  /** The agent of the run, or the one that is to be started. */
  readonly agent?: string;
  readonly session?: string;
  /** The run, as the journal lists it. */
  readonly run?: RunRecord;
}

/** A visitor of the server, as the program has authenticated it. */
export interface Access {
  /** Whose runs and sessions the request starts and finds. To the visitor, those of others do not exist. With `session` it reaches that session alone. */
  readonly identity: { readonly tenant: string; readonly user: string; readonly session?: string };
  /** What the visitor may do to runs, as `Caller.scope`. An `admin` reaches every run of the journal. Default `owner_user`. */
  readonly as?: ControlScope;
  /** Scopes that the user holds, for tools that need some: runs that the visitor starts have them. Default none. */
  readonly scopes?: readonly string[];
  /** A function that allows less. Where it returns anything but true the request is `forbidden`, or gets `run_not_found` when the visitor may not read. Default: all is allowed. */
  readonly may?: (action: Action, subject: Subject) => boolean | Promise<boolean>;
}

/**
 * Says who sends the request, before anything else happens. It may return a `Response`, which is then the answer, such as a 401 with its `www-authenticate`.
 * What it throws is answered with status 500 and reported to `onFault`. `env` is what the platform gives beside the request.
 */
export type Authenticate = (request: Request, env?: unknown) => Access | Response | Promise<Access | Response>;

/**
 * Whoever has no name would reach what is everybody's.
 * @throws PilotageError `identity_required`, `invalid_config`.
 */
export function assertAccess(access: Access | undefined): asserts access is Access {
  const { tenant, user, session = '-' } = (access?.identity ?? {}) as Partial<Access['identity']>;
  assertIdentity({ ...(tenant !== undefined && { tenant }), ...(user !== undefined && { user }), session, run: '-' });
  const { as, scopes, may } = access as Access;
  if (as !== undefined) assertWords('authenticate', 'as', [as], CONTROL_SCOPES);
  if (scopes !== undefined) assertTexts('The option scopes of authenticate', scopes, 'orders:write');
  assertOptions<Pick<Access, 'may'>>('authenticate', { may }, { may: 'function?' });
}
