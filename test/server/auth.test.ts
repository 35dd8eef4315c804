/** Who is let in: keys that are hashed, tokens of an issuer, a header of a proxy. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Authenticate, bearerKeys, jwt, newBearerKey, proxyHeader } from '#server';
import { finish, script } from '../kit/decisions.ts';
import { world } from '../kit/world.ts';
import { serveApi } from './api-kit.ts';

const asking = (authorization?: string, more: Record<string, string> = {}) =>
  new Request('http://127.0.0.1/runs', {
    headers: { ...(authorization === undefined ? {} : { authorization }), ...more },
  });

async function answerOf(authenticate: Authenticate, request: Request, env?: unknown) {
  const answer = await authenticate(request, env);
  if (!(answer instanceof Response)) return answer;
  const { code } = (await answer.json()) as { code: string };
  return [answer.status, answer.headers.get('content-type'), answer.headers.get('www-authenticate'), code];
}

const refused = (challenge: string) => [401, 'application/problem+json', challenge, 'unauthenticated'];
const NONE = refused('Bearer');
const BAD = refused('Bearer error="invalid_token"');

describe('bearerKeys', () => {
  it('lets in who has a key of the list, and reads the file again when it has changed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-keys-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'keys.json');
    const [one, two] = [newBearerKey(), newBearerKey()];
    const write = (...keys: object[]) => writeFileSync(file, JSON.stringify({ keys }));
    write({ sha256: one.sha256, tenant: 'acme', user: 'ana' });
    const authenticate = bearerKeys({ file });
    expect(await answerOf(authenticate, asking(`Bearer ${one.key}`))).toEqual({
      identity: { tenant: 'acme', user: 'ana' },
    });
    expect(await answerOf(authenticate, asking(`Bearer ${two.key}`))).toEqual(BAD);
    expect(await answerOf(authenticate, asking(`Bearer ${one.sha256}`))).toEqual(BAD);
    expect(await answerOf(authenticate, asking())).toEqual(NONE);
    write({
      sha256: two.sha256,
      tenant: 'acme',
      user: 'ben',
      session: 's',
      as: 'session_user',
      scopes: ['mail'],
      note: 'a client',
    });
    expect(await answerOf(authenticate, asking(`Bearer ${one.key}`))).toEqual(BAD);
    const ben = { identity: { tenant: 'acme', user: 'ben', session: 's' }, as: 'session_user', scopes: ['mail'] };
    expect(await answerOf(authenticate, asking(`Bearer ${two.key}`))).toEqual(ben);
    writeFileSync(file, '{ "keys": [');
    await expect(authenticate(asking(`Bearer ${two.key}`))).rejects.toMatchObject({ code: 'invalid_config' });
    rmSync(file);
    await expect(authenticate(asking(`Bearer ${two.key}`))).rejects.toMatchObject({ code: 'invalid_config' });
  });

  it('answers 500 without a word about the file, and tells onFault', async () => {
    const { ask, faults } = await serveApi(
      world({ planner: script(finish()) }),
      {},
      { authenticate: bearerKeys({ file: '/nowhere/keys.json' }) },
    );
    const answer = await ask('/runs');
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('keys.json')]);
    expect(faults).toHaveLength(1);
    expect((await ask('/healthz')).status).toBe(200);
  });

  it('refuses lists that are wrong when they are given', () => {
    const { sha256 } = newBearerKey();
    const wrong = [
      {},
      { sha256, tenant: 'a' },
      { sha256: 'x', tenant: 'a', user: 'b' },
      { sha256, tenant: 'a', user: 'b', as: 'root' },
    ];
    for (const key of wrong) expect(() => bearerKeys({ keys: [key as never] })).toThrow();
    expect(() => bearerKeys({})).toThrow(/either file or keys/);
  });
});

describe('jwt', () => {
  const issuer = 'https://issuer.example';
  const audience = 'pilotage';
  const token = (
    claims: object,
    sign: { key: Parameters<SignJWT['sign']>[0]; alg: string; kid?: string; for?: string; expires?: string },
  ) =>
    new SignJWT({ ...claims })
      .setProtectedHeader({ alg: sign.alg, ...(sign.kid === undefined ? {} : { kid: sign.kid }) })
      .setIssuer(issuer)
      .setAudience(sign.for ?? audience)
      .setExpirationTime(sign.expires ?? '5m')
      .sign(sign.key);

  it('lets in by a secret, and nobody whose token is for others, over, unsigned or of no user', async () => {
    const secret = 'a secret of thirty-two bytes, more or less';
    const key = new TextEncoder().encode(secret);
    const authenticate = jwt({ secret, issuer, audience });
    const claims = { tenant: 'acme', sub: 'ana' };
    const of = async (made: Promise<string>) => answerOf(authenticate, asking(`Bearer ${await made}`));
    expect(await of(token(claims, { key, alg: 'HS256' }))).toEqual({ identity: { tenant: 'acme', user: 'ana' } });
    expect(await of(token(claims, { key, alg: 'HS256', for: 'others' }))).toEqual(BAD);
    expect(await of(token(claims, { key, alg: 'HS256', expires: '-5m' }))).toEqual(BAD);
    expect(await of(token({ sub: 'ana' }, { key, alg: 'HS256' }))).toEqual(BAD);
    expect(await of(token(claims, { key: new TextEncoder().encode(`${secret}!`), alg: 'HS256' }))).toEqual(BAD);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = `${part({ alg: 'none' })}.${part({ ...claims, iss: issuer, aud: audience, exp: 4e9 })}.`;
    expect(await answerOf(authenticate, asking(`Bearer ${unsigned}`))).toEqual(BAD);
    expect(await answerOf(authenticate, asking('Basic YTpi'))).toEqual(NONE);
  });

  it('lets in by the keys of the issuer, and takes none of them for a secret', async () => {
    const { publicKey, privateKey } = await generateKeyPair('RS256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256' };
    const server = createServer((_, response) => response.end(JSON.stringify({ keys: [jwk] })));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const jwks = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const identity = ({ org, sub }: { org?: unknown; sub?: string }) =>
      typeof org === 'string' && sub !== undefined
        ? { identity: { tenant: org, user: sub }, as: 'admin' as const }
        : undefined;
    const authenticate = jwt({ jwks, issuer, audience, identity });
    const good = await token({ org: 'acme', sub: 'ana' }, { key: privateKey, alg: 'RS256', kid: 'one' });
    expect(await answerOf(authenticate, asking(`Bearer ${good}`))).toEqual({
      identity: { tenant: 'acme', user: 'ana' },
      as: 'admin',
    });
    const confused = await token(
      { org: 'acme', sub: 'ana' },
      { key: new TextEncoder().encode(jwk.n), alg: 'HS256', kid: 'one' },
    );
    expect(await answerOf(authenticate, asking(`Bearer ${confused}`))).toEqual(BAD);
    const unknown = await token({ org: 'acme', sub: 'ana' }, { key: privateKey, alg: 'RS256', kid: 'two' });
    expect(await answerOf(jwt({ jwks: { keys: [jwk] }, issuer, audience }), asking(`Bearer ${unknown}`))).toEqual(BAD);
  });

  it('does not blame the client when the keys cannot be had', async () => {
    const { privateKey } = await generateKeyPair('RS256');
    const good = await token({ tenant: 'acme', sub: 'ana' }, { key: privateKey, alg: 'RS256', kid: 'one' });
    const authenticate = jwt({ jwks: 'http://127.0.0.1:9/keys', issuer, audience });
    await expect(authenticate(asking(`Bearer ${good}`))).rejects.toThrow();
  });

  it('refuses secrets that are too short', () => {
    expect(() => jwt({ secret: 'short', issuer, audience })).toThrow(/32 bytes/);
  });
});

describe('proxyHeader', () => {
  const from = (remoteAddress: string) => ({ incoming: { socket: { remoteAddress } } });
  const OTHER = refused('Proxy');

  it('believes the header of the proxy, and of nobody else', async () => {
    const authenticate = proxyHeader({ header: 'x-user', tenant: { header: 'x-org' }, trusted: ['10.0.0.0/8', '::1'] });
    const ana = asking(undefined, { 'x-user': 'ana', 'x-org': 'acme' });
    const isAna = { identity: { tenant: 'acme', user: 'ana' } };
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::1'])
      expect(await answerOf(authenticate, ana, from(address))).toEqual(isAna);
    for (const address of ['11.0.0.1', '127.0.0.1', '::ffff:11.0.0.1'])
      expect(await answerOf(authenticate, ana, from(address))).toEqual(OTHER);
    expect(await answerOf(authenticate, ana)).toEqual(OTHER);
    expect(
      await answerOf(authenticate, asking(undefined, { 'x-user': 'ana, ben', 'x-org': 'acme' }), from('::1')),
    ).toEqual(OTHER);
    expect(await answerOf(authenticate, asking(), from('::1'))).toEqual(OTHER);
    expect(() => proxyHeader({ header: 'x-user', tenant: 'acme', trusted: ['somewhere'] })).toThrow(/addresses/);
  });

  it('knows over real HTTP who has connected', async () => {
    const own = { authenticate: proxyHeader({ header: 'x-user', tenant: 'acme' }) };
    const { ask } = await serveApi(world({ planner: script(finish()) }), {}, own);
    expect((await ask('/runs', { headers: { 'x-user': 'ana' } })).status).toBe(200);
    const elsewhere = await serveApi(
      world({ planner: script(finish()) }),
      {},
      { authenticate: proxyHeader({ header: 'x-user', tenant: 'acme', trusted: ['10.0.0.1'] }) },
    );
    expect((await elsewhere.ask('/runs', { headers: { 'x-user': 'ana' } })).status).toBe(401);
  });
});
