/** Who asks, in tests: whoever they say that they are. */
import type { Access, Authenticate } from '#server';

/** The bearer says who it is: `acme/ana`, or `acme/ana/admin`. */
export const bearer: Authenticate = (request) => {
  const [tenant, user, as] = (request.headers.get('authorization') ?? '').replace('Bearer ', '').split('/');
  if (!tenant || !user) return new Response('who?', { status: 401, headers: { 'www-authenticate': 'Bearer' } });
  return { identity: { tenant, user }, ...(as === undefined ? {} : { as: as as 'admin' | 'session_user' }) };
};

/** The same, and a visitor may do what `may` says. */
export function bearerWhoMay(may: Access['may'] & object): Authenticate {
  return async (request) => {
    const access = await bearer(request);
    return access instanceof Response ? access : { ...access, may };
  };
}
