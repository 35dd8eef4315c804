/** JSON Web Tokens that somebody else has issued, through the package `jose`, which is loaded with the first request. */
import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from 'jose';
import { assertOptions, type OptionShape, PilotageError } from '#core';
import type { Access, Authenticate } from '../access.ts';
import { BAD_BEARER, bearerIn, NO_BEARER } from './bearer.ts';

export interface JwtOptions {
  /** Where the public keys of the issuer are, or these themselves. Either this or `secret`. */
  readonly jwks?: string | JSONWebKeySet;
  /** A secret that the issuer and the server share (HS256), of 32 bytes at least. */
  readonly secret?: string;
  /** Who must have issued the token (`iss`). */
  readonly issuer: string;
  /** For whom it must be (`aud`). */
  readonly audience: string;
  /**
   * Whom a token lets in; `undefined`: nobody. Default: the claim `tenant` is the tenant, `sub` the user, and there is nothing more that they may do.
   */
  readonly identity?: (claims: JWTPayload) => Access | undefined;
}

const OPTIONS: OptionShape<JwtOptions> = {
  ...({ jwks: 'any?', secret: 'text?', issuer: 'text', audience: 'text', identity: 'function?' } as const),
};
/** One who may choose the algorithm could take a public key for a secret. */
const WITH_KEYS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];
const LEAST_SECRET_BYTES = 32;
/** How far clocks may be apart, in seconds. */
const TOLERANCE_S = 30;

type Jose = typeof import('jose');
/** Says why a token is not let in, beside what is wrong with the keys themselves. */
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
      // It is not the client's fault when the keys cannot be had.
      if (!(error instanceof jose.errors.JOSEError) || OF_KEYS.has(error.code)) throw error;
      return BAD_BEARER();
    }
  };
}

function keysOf(jose: Jose, jwks: string | JSONWebKeySet): JWTVerifyGetKey {
  return typeof jwks === 'string' ? jose.createRemoteJWKSet(new URL(jwks)) : jose.createLocalJWKSet(jwks);
}

function ownIdentity({ tenant, sub }: JWTPayload): Access | undefined {
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
