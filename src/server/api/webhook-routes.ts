/** Webhooks for an admin: which there are, and how they stand. Of an address only its beginning is told, since the rest of many is a key. */
import { defined, PilotageError } from '#core';
import type { Webhook } from '../webhooks/subscription.ts';
import { webhooks } from '../webhooks/webhooks.ts';
import * as gives from './reply-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRoute, jsonReply, route } from './route.ts';
import { assertAdmin, tenantOf } from './visiting.ts';

const tag = 'webhooks';

function viewOf({ url, secret: _, headers: __, ...hook }: Webhook): gives.WebhookView {
  return { ...hook, origin: new URL(url).origin };
}

const list = route('get /webhooks', {
  tag,
  action: 'manage',
  summary: 'The webhooks of the tenant by their ids, without their secrets. For an admin.',
  query: asks.listOfTenant,
  reply: jsonReply(gives.webhookList),
  handle: async ({ visit, query }) => {
    assertAdmin(visit, 'look at webhooks');
    const { limit = 50, after = '' } = query;
    const all = await webhooks({ runtime: visit.runtime }).list(tenantOf(visit, query));
    const behind = all.filter(({ id }) => id > after).sort((one, other) => (one.id < other.id ? -1 : 1));
    const items = behind.slice(0, limit).map(viewOf);
    return { items, ...defined({ next: behind.length > limit ? items.at(-1)?.id : undefined }) };
  },
});

const get = route('get /webhooks/{webhook}', {
  tag,
  action: 'manage',
  summary:
    'A webhook, and how it stands: how many of its runs are open, posted, failing or given up, and what failed last.',
  query: asks.ofTenant,
  reply: jsonReply(gives.webhook),
  handle: async ({ visit, params, query }) => {
    assertAdmin(visit, 'look at a webhook');
    const hooks = webhooks({ runtime: visit.runtime });
    const of = [tenantOf(visit, query), params.webhook] as const;
    const [hook, state] = [await hooks.get(...of), await hooks.state(...of)];
    if (hook === undefined || state === undefined)
      throw new PilotageError('run_not_found', `There is no webhook ${params.webhook}.`);
    // Which process posts is the server's own business, as with runs.
    const { claim: _, ...last } = state.last ?? { run: '', position: 0 };
    return { ...viewOf(hook), state: { ...state, ...(state.last && { last }) } };
  },
});

export const WEBHOOK_ROUTES: readonly ApiRoute[] = [list, get];
