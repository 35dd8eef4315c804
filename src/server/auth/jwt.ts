/** Lets in clients by JSON Web Tokens of an issuer. The package `jose` checks them; it is loaded with the first request. */
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { assertOptions, type OptionShape, PilotageError } from '#core';
import type { Access, Authenticate } from '../access.ts';
import { BAD_BEARER, bearerIn, NO_BEARER } from './bearer.ts';

/** What a token says: the claims that are registered (RFC 7519), and the issuer's own. */
export interface JwtClaims {
  readonly iss?: string;
  readonly sub?: string;
  readonly exp?: number;
  readonly [claim: string]: unknown;
}

export interface JwtOptions {
  /** The address of the issuer's public keys, or the keys themselves. Give this or `secret`. */
  readonly jwks?: string | { readonly keys: readonly Readonly<Record<string, unknown>>[] };
  /** The secret that the issuer and the server share (HS256), of at least 32 bytes. */
  readonly secret?: string;
  /** The issuer that a token must name (`iss`). */
  readonly issuer: string;
  /** The audience that a token must name (`aud`). */
  readonly audience: string;
  /**
   * Makes the visitor of a token from its claims; `undefined` lets nobody in. Default: the claim `tenant` is the tenant and `sub` the user, with the rights
   * of an owner.
   */
  readonly identity?: (claims: JwtClaims) => Access | undefined;
}

const OPTIONS: OptionShape<JwtOptions> = {
  ...({ jwks: 'any?', secret: 'text?', issuer: 'text', audience: 'text', identity: 'function?' } as const),
};
/** Algorithms of public keys. HS256 is left out: an attacker could use a public key as its secret. */
const WITH_KEYS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];
const LEAST_SECRET_BYTES = 32;
/** How far the clocks of the issuer and the server may differ, in seconds. */
const TOLERANCE_S = 30;

type Jose = typeof import('jose');
/** Codes of errors that are about the keys, and not about the token. */
const OF_KEYS = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC']);

/** @throws PilotageError `invalid_config`. */
export function jwt(options: JwtOptions): Authenticate {
  assertOptions('jwt', options, OPTIONS);
  const { jwks, secret, issuer, audience, identity = ownIdentity } = options;
  if ((jwks === undefined) === (secret === undefined))
    throw new PilotageError('invalid_config', 'jwt takes either jwks or secret.');
  if (typeof jwks === 'string' && !URL.canParse(jwks))
    throw new PilotageError(
      'invalid_config',
      'The option jwks of jwt is the address of the keys, or the keys themselves.',
    );
  if (secret !== undefined && Buffer.byteLength(secret) < LEAST_SECRET_BYTES)
    throw new PilotageError('invalid_config', `The secret of jwt has at least ${LEAST_SECRET_BYTES} bytes.`);
  const bytes = secret === undefined ? undefined : new TextEncoder().encode(secret);
  const terms = { issuer, audience, clockTolerance: TOLERANCE_S, requiredClaims: ['exp'] };
  let keys: JWTVerifyGetKey | undefined;
  return async (request) => {
    const token = bearerIn(request);
    if (token === undefined) return NO_BEARER();
    const jose = await load();
    try {
      keys ??= jwks === undefined ? undefined : keysOf(jose, jwks);
      const { payload } =
        keys === undefined
          ? await jose.jwtVerify(token, bytes ?? new Uint8Array(), { ...terms, algorithms: ['HS256'] })
          : await jose.jwtVerify(token, keys, { ...terms, algorithms: WITH_KEYS });
      return identity(payload) ?? BAD_BEARER();
    } catch (error) {
      // When the keys cannot be loaded, it is not the client's fault.
      if (!(error instanceof jose.errors.JOSEError) || OF_KEYS.has(error.code)) throw error;
      return BAD_BEARER();
    }
  };
}

function keysOf(jose: Jose, jwks: NonNullable<JwtOptions['jwks']>): JWTVerifyGetKey {
  if (typeof jwks === 'string') return jose.createRemoteJWKSet(new URL(jwks));
  return jose.createLocalJWKSet(jwks as unknown as JSONWebKeySet);
}

function ownIdentity({ tenant, sub }: JwtClaims): Access | undefined {
  const isWhole = typeof tenant === 'string' && tenant.trim() !== '' && typeof sub === 'string' && sub.trim() !== '';
  return isWhole ? { identity: { tenant, user: sub } } : undefined;
}

/** @throws PilotageError `package_missing`. */
async function load(): Promise<Jose> {
  try {
    return await import('jose');
  } catch (cause) {
    throw new PilotageError('package_missing', 'jwt needs the package jose: npm install jose', {
      data: { package: 'jose' },
      cause,
    });
  }
}
