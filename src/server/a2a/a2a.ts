/** `a2a()`: offers an agent of the runtime to other agents, over A2A 1.0. A task is a run, a context is a session. */
import type { Context } from 'hono';
import { assertOptions, type OptionShape } from '#core';
import type { Part, ServerEnv } from '../part.ts';
import type { Visit } from '../visit.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import { type A2aBinding, jsonRpc, rest } from './bindings.ts';
import { type CardOptions, cardOf } from './card.ts';
import { PushConfigs } from './push.ts';
import { CARD_PATH } from './wire.ts';

export interface A2aOptions {
  /** The name of the agent that carries out the tasks. Default: as in `runtime.session`. */
  readonly agent?: string;
  /** The path of JSON-RPC; HTTP+JSON is at `/v1` below it. Default `/a2a`. */
  readonly path?: string;
  /** What the card says of the agent, and of how visitors are authenticated. */
  readonly card?: CardOptions;
  /** The card for visitors who were let in. Default: there is none. */
  readonly extendedCard?: CardOptions | ((visit: Visit) => CardOptions | Promise<CardOptions>);
  /** The webhooks that send push notifications. Other parts may use the same. Default: no push notifications are sent. */
  readonly webhooks?: Webhooks;
}

const OPTIONS: OptionShape<A2aOptions> = {
  agent: 'text?',
  path: 'text?',
  card: 'object?',
  extendedCard: 'any?',
  webhooks: 'object?',
};

/** A part for `createHandler`. @throws PilotageError `invalid_config`. */
export function a2a(options: A2aOptions = {}): Part {
  assertOptions('a2a', options, OPTIONS);
  const { agent, path = '/a2a', card = {}, extendedCard, webhooks } = options;
  const push = webhooks && new PushConfigs(webhooks);
  const facts = { agent, path, pushes: push !== undefined, isExtended: extendedCard !== undefined };
  const cardAt = (request: Context<ServerEnv>, more: CardOptions = {}) =>
    cardOf({ ...card, ...more }, facts, new URL(request.req.url).origin);
  const extended =
    typeof extendedCard === 'function' || extendedCard === undefined ? extendedCard : (): CardOptions => extendedCard;
  return {
    name: 'a2a',
    open: [CARD_PATH],
    routes: (app, context) => {
      const deps: A2aBinding['deps'] = (request) => ({ agent, push, extended, card: (more) => cardAt(request, more) });
      app.get(CARD_PATH, (request) => {
        request.header('cache-control', 'public, max-age=60');
        request.header('access-control-allow-origin', '*');
        return request.json(cardAt(request));
      });
      jsonRpc(app, { path, deps, context });
      rest(app, { path: `${path}/v1`, deps, context });
    },
  };
}
