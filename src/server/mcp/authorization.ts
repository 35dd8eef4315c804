/** Tells clients that are not let in who gives them a token: metadata of the protected resource (RFC 9728), and a challenge that names it. */
import { assertOptions, type OptionShape, PilotageError } from '#core';

export interface McpAuthorization {
  /** The address of the server as its clients know it, such as `https://agents.example.com/mcp`. It is the audience of their tokens. */
  readonly resource: string;
  /** The addresses of the authorization servers that give tokens for it. `authenticate` checks the tokens, for instance by `jwt`. */
  readonly servers: readonly string[];
}

const OPTIONS: OptionShape<McpAuthorization> = { resource: 'text', servers: 'list' };
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

export class ProtectedResource {
  /** The paths of the metadata: that which follows from the address of the resource, and that of the host. */
  readonly paths: readonly string[];
  readonly #metadata: object;
  readonly #challenge: string;
  readonly #path: string;

  /** @param path that of the server. @throws PilotageError `invalid_config`. */
  constructor(given: McpAuthorization, path: string) {
    this.#path = path;
    assertOptions('mcp.authorization', given, OPTIONS);
    const { resource, servers } = given;
    const { origin, pathname, hash } = webAddress(resource);
    if (hash !== '' || servers.length === 0) throw unfit(hash === '' ? 'no server' : resource);
    for (const server of servers) webAddress(server);
    const own = `${WELL_KNOWN}${pathname === '/' ? '' : pathname}`;
    this.paths = [...new Set([own, WELL_KNOWN])];
    this.#metadata = { resource, authorization_servers: servers, bearer_methods_supported: ['header'] };
    this.#challenge = `resource_metadata="${origin}${own}"`;
  }

  metadata(): Response {
    return Response.json(this.#metadata);
  }

  /** To a refusal with status 401 it adds a challenge of the scheme Bearer that says where the metadata is. */
  readonly refused = (request: Request, refusal: Response): Response => {
    if (refusal.status !== 401 || new URL(request.url).pathname !== this.#path) return refusal;
    const headers = new Headers(refusal.headers);
    const given = headers.get('www-authenticate') ?? '';
    const others = given.replace(/^bearer(?: +|$)/i, '');
    headers.set('www-authenticate', `Bearer ${this.#challenge}${others === '' ? '' : `, ${others}`}`);
    return new Response(refusal.body, { status: 401, headers });
  };
}

/** @throws PilotageError `invalid_config`. */
function webAddress(given: unknown): URL {
  const url = typeof given === 'string' ? URL.parse(given) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) throw unfit(given);
  return url;
}

function unfit(given: unknown): PilotageError {
  const message = `The option authorization of mcp is { resource, servers }, each an address such as https://agents.example.com/mcp, and not ${JSON.stringify(given)}.`;
  return new PilotageError('invalid_config', message);
}
