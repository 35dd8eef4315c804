/** What all ways to let somebody in by a bearer share: where it stands, and how it is refused. */
import { problem, RequestRefused } from '../problem.ts';

/** A 401 as problem details, which says how one is let in. */
export function unauthenticated(detail: string, challenge: string): Response {
  const refused = problem(new RequestRefused('unauthenticated', detail));
  refused.headers.set('www-authenticate', challenge);
  return refused;
}

const MAX_BEARER = 8_192;

/** `undefined` when there is none. */
export function bearerIn(request: Request): string | undefined {
  const [, token] = /^bearer +([\w.~+/=:-]+) *$/i.exec(request.headers.get('authorization') ?? '') ?? [];
  return token === undefined || token.length > MAX_BEARER ? undefined : token;
}

export const NO_BEARER: () => Response = () =>
  unauthenticated('The request needs a header such as authorization: Bearer <key>.', 'Bearer');

/** What was given is not good, and the client need not know why. */
export const BAD_BEARER: () => Response = () =>
  unauthenticated('The bearer of the request is not let in.', 'Bearer error="invalid_token"');
