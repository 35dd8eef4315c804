/**
 * The server as one function from a request to its response, for whatever runs such functions: Node's `http` (by `serve`), Next, Hono, workers. Its parts
 * are Pilotage's own API and the protocols of clients.
 */
import { Hono } from 'hono';
import { assertOptions, type OptionShape, PilotageError, withTraceparent } from '#core';
import type { Runtime } from '#runtime';
import { type Access, type Authenticate, assertAccess } from './access.ts';
import { bodyGuard, type GuardOptions, guards } from './guard.ts';
import type { Part, PartContext, ServerEnv } from './part.ts';
import { type ErrorText, plainErrorText, problem, RequestRefused, statusOf } from './problem.ts';
import { StreamSlots } from './stream-slots.ts';
import { Visit } from './visit.ts';

export interface HandlerOptions extends GuardOptions {
  readonly runtime: Runtime;
  /** What the server answers: `api()`, and the protocols that its clients speak. */
  readonly parts: readonly Part[];
  /** Says who sends a request. Default: only this machine is answered, as tenant and user `local`. */
  readonly authenticate?: Authenticate;
  /** How many streams one user may read at once. Default 50. */
  readonly maxStreamsPerUser?: number;
  /**
   * Makes the text about an error that a run has recorded. The error's own message may hold secrets, so that clients are not sent it. Default: that something
   * went wrong, with the code.
   */
  readonly errorText?: ErrorText;
  /** Called with errors whose details clients are not told. Default: a process warning. */
  readonly onFault?: (error: unknown) => void;
}

/** `env` is what the platform gives beside the request, such as the connection under Node. */
export interface Handler {
  (request: Request, env?: unknown): Promise<Response>;
  /** The same server as a Hono app: to be mounted, or given middleware. */
  readonly app: Hono<ServerEnv>;
}

const OPTIONS: OptionShape<HandlerOptions> = {
  runtime: 'object',
  parts: 'list',
  authenticate: 'function?',
  hosts: 'list?',
  origins: 'list?',
  maxBodyBytes: 'count?',
  maxStreamsPerUser: 'count?',
  errorText: 'function?',
  onFault: 'function?',
};
const MAX_STREAMS = 50;
const LOCAL: Access = { identity: { tenant: 'local', user: 'local' } };

/** @throws PilotageError `invalid_config`. */
export function createHandler(options: HandlerOptions): Handler {
  const app = createApp(options);
  const handler = async (request: Request, env?: unknown): Promise<Response> => app.fetch(request, env as object);
  return Object.assign(handler, { app });
}

function createApp(options: HandlerOptions): Hono<ServerEnv> {
  assertOptions('createHandler', options, OPTIONS);
  const { runtime, parts, authenticate, errorText = plainErrorText, onFault = warn } = options;
  // Clients come back to what they have begun in another request, and want what was said until then.
  runtime.expectReaders();
  const app = new Hono<ServerEnv>();
  const slots = new StreamSlots(options.maxStreamsPerUser ?? MAX_STREAMS);
  for (const guard of guards(options, authenticate === undefined)) app.use(guard);
  app.use(async (context, next) => {
    const { raw, path } = context.req;
    const isLetIn = authenticate === undefined || parts.some((part) => opens(part, path));
    const access = isLetIn ? LOCAL : await asked(authenticate, raw, context.env, onFault);
    if (access instanceof Response)
      return parts.reduce((refusal, part) => part.refused?.(raw, refusal) ?? refusal, access);
    context.set('visit', new Visit(access, runtime, slots, raw));
    // Runs that the request starts belong to its trace.
    return withTraceparent(raw.headers.get('traceparent') ?? undefined, next);
  });
  app.use(bodyGuard(options));
  const context: PartContext = { runtime, errorText, onFault };
  assertParts(parts);
  for (const part of parts) part.routes(app, context);
  app.notFound(({ req: { method, path } }) =>
    problem(new RequestRefused('route_unknown', `Nothing answers ${method} ${path} here.`)),
  );
  app.onError((error) => {
    if (statusOf(error) >= 500) onFault(error);
    return problem(error);
  });
  return app;
}

/** An error of `authenticate` is the server's fault, and not that of the request. */
async function asked(
  authenticate: Authenticate,
  request: Request,
  env: unknown,
  onFault: (error: unknown) => void,
): Promise<Access | Response> {
  try {
    const access = await authenticate(request, env);
    if (!(access instanceof Response)) assertAccess(access);
    return access;
  } catch (error) {
    onFault(error);
    return problem(new Error('authenticate threw'));
  }
}

function opens({ open }: Part, path: string): boolean {
  return typeof open === 'function' ? open(path) : open?.includes(path) === true;
}

/** @throws PilotageError `invalid_config`. */
function assertParts(parts: readonly Part[]): void {
  const names = parts.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (parts.length > 0 && twice === undefined) return;
  const message = twice === undefined ? 'parts needs one part at least, such as api().' : `parts has ${twice} twice.`;
  throw new PilotageError('invalid_config', `createHandler: ${message}`);
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
