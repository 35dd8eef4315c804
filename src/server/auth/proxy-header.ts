/** Lets in users that a proxy in front of the server has authenticated, and names in a header. */
import { BlockList, isIP } from 'node:net';
import { assertOptions, type OptionShape, PilotageError } from '#core';
import type { Access, Authenticate } from '../access.ts';
import { remoteAddress } from '../connection.ts';
import { unauthenticated } from './bearer.ts';

export interface ProxyHeaderOptions {
  /** The header with the name of the user, such as `x-forwarded-user`. The proxy must set it on each request, whatever the client has sent. */
  readonly header: string;
  /** The tenant of all users, or the header that names it. */
  readonly tenant: string | { readonly header: string };
  /** The addresses from which the proxy connects, such as `10.0.0.7`, or ranges such as `10.0.0.0/8`. Others are not let in. Default: this machine. */
  readonly trusted?: readonly string[];
  /** The control scope of a user. Default `owner_user`. */
  readonly as?: (user: string, request: Request) => Access['as'];
}

const OPTIONS: OptionShape<ProxyHeaderOptions> = { header: 'text', tenant: 'any', trusted: 'list?', as: 'function?' };
const HEADER = /^[!#$%&'*+.^`|~\w-]+$/;
const LOOPBACK = ['127.0.0.0/8', '::1'];

/** @throws PilotageError `invalid_config`. */
export function proxyHeader(options: ProxyHeaderOptions): Authenticate {
  assertOptions('proxyHeader', options, OPTIONS);
  const { header, tenant, trusted = LOOPBACK, as } = options;
  if (
    trusted.some((each) => typeof each !== 'string') ||
    (typeof tenant !== 'string' && typeof tenant?.header !== 'string') ||
    ![header, typeof tenant === 'string' ? 'x' : tenant.header].every((name) => HEADER.test(name)) ||
    (typeof tenant === 'string' && tenant.trim() === '')
  )
    throw new PilotageError(
      'invalid_config',
      'proxyHeader takes the name of a header, trusted as a list of addresses, and tenant as a name or { header }.',
    );
  const proxies = addresses(trusted);
  const refused = (): Response =>
    unauthenticated('The request has not come through the proxy that lets users in.', 'Proxy');
  return (request, env) => {
    if (!isAmong(proxies, remoteAddress(env))) return refused();
    const user = nameIn(request, header);
    const of = typeof tenant === 'string' ? tenant : nameIn(request, tenant.header);
    if (user === undefined || of === undefined) return refused();
    const scope = as?.(user, request);
    return { identity: { tenant: of, user }, ...(scope === undefined ? {} : { as: scope }) };
  };
}

/** The name in the header. A header that was sent twice names nobody. */
function nameIn(request: Request, header: string): string | undefined {
  const value = request.headers.get(header)?.trim();
  return value === undefined || value === '' || value.includes(',') ? undefined : value;
}

/** @throws PilotageError `invalid_config`. */
function addresses(given: readonly string[]): BlockList {
  const list = new BlockList();
  for (const each of given) {
    const [address = '', bits, more] = each.split('/');
    const kind = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    try {
      // No number would be 0: all addresses there are.
      if (more !== undefined || !/^\d{1,3}$/.test(bits ?? '0'))
        throw new Error('It must be an address, or a range such as 10.0.0.0/8.');
      if (bits === undefined) list.addAddress(address, kind);
      else list.addSubnet(address, Number(bits), kind);
    } catch (cause) {
      const message = `proxyHeader cannot trust ${JSON.stringify(each)}; give addresses such as 10.0.0.7 or 10.0.0.0/8.`;
      throw new PilotageError('invalid_config', message, { cause });
    }
  }
  return list;
}

function isAmong(list: BlockList, address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  return list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
}
