/** OAuth: clients that are not let in find out who gives tokens (RFC 9728), get one, and are let in with it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import {
  Client,
  ClientCredentialsProvider,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { discoverOAuthProtectedResourceMetadata as firstDiscover } from '@modelcontextprotocol/sdk/client/auth.js';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { type Authenticate, createHandler, jwt } from '#server';
import { mcp } from '#server/mcp';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { SECRET } from '../kit/mcp.ts';

/** An authorization server that gives tokens to one client, for the resource that it asks for. */
async function issuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const say = (value: object) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (request.url === '/keys') return say({ keys: [await exportJWK(publicKey)] });
    if (request.url !== '/token') {
      if (!request.url?.startsWith('/.well-known/')) return response.writeHead(404).end();
      const more = { response_types_supported: ['code'], grant_types_supported: ['client_credentials'] };
      return say({ issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token`, ...more });
    }
    let body = '';
    for await (const piece of request) body += piece;
    const resource = new URLSearchParams(body).get('resource') ?? '';
    asked.push(resource);
    const token = new SignJWT({ tenant: 'acme' }).setProtectedHeader({ alg: 'ES256' }).setSubject('ana');
    const signed = token.setIssuer(url).setAudience(resource).setExpirationTime('1m').sign(privateKey);
    return say({ access_token: await signed, token_type: 'Bearer', expires_in: 60 });
  });
  const url = await listening(server);
  return { url, asked };
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** @param authenticate is made when the address of the server is known. */
async function served(server: string, authenticate: (resource: string) => Authenticate, path = '/mcp') {
  const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal: memoryJournal() });
  const listens = createServer();
  const url = await listening(listens);
  onTestFinished(() => runtime.close());
  const resource = `${url}${path}`;
  const parts = [mcp({ secret: SECRET, path, authorization: { resource, servers: [server] } })];
  listens.on('request', getRequestListener(createHandler({ runtime, parts, authenticate: authenticate(resource) })));
  return { resource, url };
}

const asking = (resource: string, headers: Record<string, string> = {}) => fetch(resource, { method: 'POST', headers });

describe('auth: a client of MCP that is not let in', () => {
  it('is told where the metadata of the resource is (401 with WWW-Authenticate, RFC 9728), and finds the authorization servers', async () => {
    const { resource, url } = await served('https://auth.example.com', () =>
      jwt({ secret: 'x'.repeat(32), issuer: 'i', audience: 'a' }),
    );
    const metadata = { resource, authorization_servers: ['https://auth.example.com'] };
    for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
      const refused = await asking(resource, headers as Record<string, string>);
      expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([401, 'unauthenticated']);
      const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused);
      expect(resourceMetadataUrl?.href).toBe(`${url}/.well-known/oauth-protected-resource/mcp`);
      const found = await discoverOAuthProtectedResourceMetadata(resource, {
        resourceMetadataUrl: resourceMetadataUrl ?? '',
      });
      expect(found).toMatchObject(metadata);
    }
    const wrong = await asking(resource, { authorization: 'Bearer wrong' });
    expect(extractWWWAuthenticateParams(wrong)).toMatchObject({ error: 'invalid_token' });
    // By the address alone, in both packages, and by that of the host.
    expect(await discoverOAuthProtectedResourceMetadata(resource)).toMatchObject(metadata);
    expect(await firstDiscover(resource)).toMatchObject(metadata);
    expect(await (await fetch(`${url}/.well-known/oauth-protected-resource`)).json()).toMatchObject(metadata);
    // Other paths are none of the resource.
    expect((await fetch(`${url}/other`)).headers.get('www-authenticate')).toBe('Bearer');
  });

  it('gets a token of that server by itself, for this resource, and calls a tool', async () => {
    const { url, asked } = await issuer();
    const { resource } = await served(url, (audience) => jwt({ jwks: `${url}/keys`, issuer: url, audience }));
    const credentials = { clientId: 'desk', clientSecret: 'secret', expectedIssuer: url };
    const client = new Client({ name: 'test', version: '1.0.0' });
    onTestFinished(() => client.close());
    const authProvider = new ClientCredentialsProvider(credentials);
    await client.connect(new StreamableHTTPClientTransport(new URL(resource), { authProvider }));
    const answer = await client.callTool({ name: 'scenario', arguments: { input: 'say hello' } });
    expect(answer.content).toEqual([{ type: 'text', text: 'hello' }]);
    expect(asked).toEqual([resource]);
  });

  it('is told so beside what the program says itself, and only with status 401', async () => {
    let refusal = new Response(null, { status: 401 });
    const { resource, url } = await served('https://auth.example.com', () => () => refusal, '/');
    const challenge = `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource"`;
    const told = async () => (await asking(resource)).headers.get('www-authenticate');
    expect(await told()).toBe(challenge);
    refusal = new Response(null, { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } });
    expect(await told()).toBe(`${challenge}, Basic realm="x"`);
    refusal = new Response(null, { status: 403 });
    expect(await told()).toBeNull();
  });

  it('is told nothing by a server that names no authorization server', async () => {
    const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal: memoryJournal() });
    onTestFinished(() => runtime.close());
    const authenticate = jwt({ secret: 'x'.repeat(32), issuer: 'i', audience: 'a' });
    const handler = createHandler({ runtime, parts: [mcp({ secret: SECRET })], authenticate });
    const answer = await handler(new Request('http://127.0.0.1/mcp', { method: 'POST' }));
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    const metadata = await handler(new Request('http://127.0.0.1/.well-known/oauth-protected-resource/mcp'));
    expect(metadata.status).toBe(401);
  });

  it('has addresses that can be', () => {
    const servers = ['https://auth.example.com'];
    for (const wrong of [
      { resource: 'mcp', servers },
      { resource: 'ftp://a.example/mcp', servers },
      { resource: 'https://a.example/mcp#x', servers },
      { resource: 'https://a.example/mcp', servers: [] },
      { resource: 'https://a.example/mcp', servers: ['auth'] },
    ])
      expect(() => mcp({ secret: SECRET, authorization: wrong })).toThrow(/authorization/);
  });
});
