/** Servers of our own API for tests, over real HTTP, and their clients. */
import { onTestFinished } from 'vitest';
import { type Client, createClient } from '#pilotage/client';
import { api, createHandler, serve } from '#server';
import type { World } from '../kit/world.ts';
import { bearer } from './bearer.ts';

export { bearer };

type Options = Partial<Parameters<typeof createHandler>[0]>;

export interface ServedApi {
  readonly url: string;
  readonly port: number;
  readonly handler: ReturnType<typeof createHandler>;
  readonly faults: unknown[];
  as(who: string): Client;
  ask(path: string, init?: RequestInit & { who?: string }): Promise<Response>;
}

export async function serveApi(
  { runtime }: Pick<World, 'runtime'>,
  apiOptions: Parameters<typeof api>[0] = {},
  options: Options = {},
): Promise<ServedApi> {
  const faults: unknown[] = [];
  const handler = createHandler({
    runtime,
    parts: [api(apiOptions)],
    authenticate: bearer,
    onFault: (error) => void faults.push(error),
    ...options,
  });
  const served = await serve(handler, { port: 0 });
  onTestFinished(() => served.close());
  const url = `${served.url}${apiOptions?.path ?? ''}`;
  const as = (who: string) => createClient({ url, headers: { authorization: `Bearer ${who}` }, patienceMs: 5_000 });
  const ask = (path: string, init: RequestInit & { who?: string } = {}) => {
    const { who = 'acme/ana', headers, ...rest } = init;
    return fetch(`${url}${path}`, { ...rest, headers: { authorization: `Bearer ${who}`, ...(headers as object) } });
  };
  return { ...served, url, handler, as, ask, faults };
}

export async function taken<T>(events: AsyncIterable<T>, until: (event: T) => boolean = () => false): Promise<T[]> {
  const found: T[] = [];
  for await (const event of events) {
    found.push(event);
    if (until(event)) break;
  }
  return found;
}
