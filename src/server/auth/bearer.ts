/** Reads the bearer token of a request, and makes the responses that refuse one. */
import { problem, RequestRefused } from '../problem.ts';

/** A response with status 401, as problem details, whose challenge says how to authenticate. */
export function unauthenticated(detail: string, challenge: string): Response {
  const refused = problem(new RequestRefused('unauthenticated', detail));
  refused.headers.set('www-authenticate', challenge);
  return refused;
}

const MAX_BEARER = 8_192;

/** @returns `undefined` when the request has no bearer token. */
export function bearerIn(request: Request): string | undefined {
  const [, token] = /^bearer +([\w.~+/=:-]+) *$/i.exec(request.headers.get('authorization') ?? '') ?? [];
  return token === undefined || token.length > MAX_BEARER ? undefined : token;
}

export const NO_BEARER: () => Response = () =>
  unauthenticated('The request needs a header such as authorization: Bearer <key>.', 'Bearer');

/** The token is not valid. The client is not told why. */
export const BAD_BEARER: () => Response = () =>
  unauthenticated('The bearer of the request is not let in.', 'Bearer error="invalid_token"');
