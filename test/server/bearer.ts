/** Who asks, in tests: whoever they say that they are. */
import type { Authenticate } from '#server';

/** The bearer says who it is: `acme/ana`, or `acme/ana/admin`. */
export const bearer: Authenticate = (request) => {
  const [tenant, user, as] = (request.headers.get('authorization') ?? '').replace('Bearer ', '').split('/');
  if (!tenant || !user) return new Response('who?', { status: 401, headers: { 'www-authenticate': 'Bearer' } });
  return { identity: { tenant, user }, ...(as === undefined ? {} : { as: as as 'admin' | 'session_user' }) };
};
