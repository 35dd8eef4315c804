/** Events from outside: from visitors who may, and from whoever signs them. */
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { api } from '#server';
import { finish, script } from '../kit/decisions.ts';
import { world } from '../kit/world.ts';
import { serveApi } from './api-kit.ts';

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;
const signedEvents = [
  {
    prefix: 'stripe:',
    secret: [`whsec_${Buffer.from('the secret before this one').toString('base64')}`, secret],
    tenant: 'acme',
  },
];

const body = JSON.stringify({ paid: true });

async function served() {
  const { ask, as } = await serveApi(world({ planner: script(finish()) }), { signedEvents });
  const send = (key: string, headers: Record<string, string>, text = body, who = '') =>
    ask(`/events/${key}`, { method: 'POST', body: text, headers, who });
  return { ask, as, send };
}

/** The headers as a sender makes them with the package of Standard Webhooks. */
function signed(id: string, { at = new Date(), by = secret, text = body } = {}): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': `v1a,AAAA ${new Webhook(by).sign(id, at, text)}`,
  };
}

const OF_17 = `${encodeURIComponent('stripe:order-17')}/msg_1`;

it('takes signed events from nobody who does not know the secret, each once', async () => {
  const { send } = await served();
  const first = await send('stripe:order-17', signed(OF_17));
  expect([first.status, await first.json()]).toEqual([
    202,
    expect.objectContaining({ id: OF_17, isNew: true, kept: true }),
  ]);
  const other = `${encodeURIComponent('stripe:order-17')}/msg_2`;
  const refused = [
    send('stripe:order-17', {}),
    send('stripe:order-17', {}, body, 'acme/boss/admin'),
    send('stripe:order-17', signed(other), `${body} `),
    send('stripe:order-17', signed(other, { at: new Date(Date.now() - 600_000) })),
    send('stripe:order-17', signed(other, { at: new Date(Date.now() + 600_000) })),
    send(
      'stripe:order-17',
      signed(other, { by: `whsec_${Buffer.from('another secret, also long').toString('base64')}` }),
    ),
    send('stripe:order-17', { ...signed(other), 'webhook-id': `${other}3` }),
    send('other:order-17', signed(other)),
    send('stripe', signed(other)),
  ];
  for (const answer of await Promise.all(refused)) expect(answer.status).toBe(401);
  expect((await send('stripe:order-17/../../runs', signed(other))).status).not.toBe(200);
});

it('takes a signed event for the key that its id says, and for no other; sent again it changes nothing', async () => {
  const { send, ask } = await served();
  const seen = signed(OF_17);
  for (const key of ['stripe:order-18', 'stripe:order-1', 'stripe:', 'stripe:order-17%2Fmsg_1'])
    expect([key, (await send(key, seen)).status]).toEqual([key, 401]);
  expect(await (await send('stripe:order-17', seen)).json()).toMatchObject({ isNew: true });
  expect(await (await send('stripe%3Aorder-17', seen)).json()).toMatchObject({ isNew: false });
  // What is not signed has no say: neither for how long the id is known, nor which id it is, nor whose runs hear it.
  for (const query of ['?keepMs=1', '?tenant=other'])
    expect(
      (await ask(`/events/stripe:order-17${query}`, { method: 'POST', body, headers: seen, who: '' })).status,
    ).toBe(400);
  expect(await (await send('stripe:order-17', { ...seen, 'idempotency-key': 'x' })).json()).toMatchObject({
    isNew: false,
  });
  const slashed = signed(`${encodeURIComponent('stripe:a/b %')}/1`);
  expect((await send(encodeURIComponent('stripe:a/b %'), slashed)).status).toBe(202);
  expect((await send('stripe:%25', signed('stripe:%/1'))).status).toBe(401);
});

it('takes an id that says no key for the key that is the prefix itself', async () => {
  const { send } = await served();
  const seen = signed('msg_2KWPBgLlAfxdpx2AI54pPJ85f4W');
  expect((await send('stripe:order-17', seen)).status).toBe(401);
  expect((await send('stripe:', seen)).status).toBe(202);
});

it('does not take a signed number for another event, whose time its first digits are', async () => {
  const { send } = await served();
  const now = Math.floor(Date.now() / 1_000);
  const headers = signed(OF_17, { text: `${now}.5` });
  const moved = {
    ...headers,
    'webhook-id': `${OF_17}.${headers['webhook-timestamp']}`,
    'webhook-timestamp': `${now}`,
  };
  expect((await send('stripe:order-17', moved, '5')).status).toBe(401);
  expect((await send('stripe:order-17', headers, `${now}.5`)).status).toBe(202);
});

it('takes keys however they are written in the path, and of several prefixes the longest counts', async () => {
  const vip = `whsec_${Buffer.from('the secret of the best ones').toString('base64')}`;
  const more = ['größe:', 'sp ace:', '{k}:', 'a%2Fb:'].map((prefix) => ({ prefix, secret, tenant: 'acme' }));
  const events = [...signedEvents, ...more, { prefix: 'stripe:vip:', secret: vip, tenant: 'best' }];
  const { ask } = await serveApi(world({ planner: script(finish()) }), { signedEvents: events });
  const send = (path: string, headers: Record<string, string>) =>
    ask(`/events/${path}`, { method: 'POST', body, headers, who: '' });
  for (const { prefix } of more) {
    const key = encodeURIComponent(`${prefix}17`);
    expect([prefix, (await send(key, signed(`${key}/1`))).status]).toEqual([prefix, 202]);
    expect([prefix, (await send(key, {})).status]).toEqual([prefix, 401]);
  }
  expect((await send('stripe%3aorder-17', signed(OF_17))).status).toBe(202);
  const best = `${encodeURIComponent('stripe:vip:1')}/1`;
  expect((await send('stripe:vip:1', signed(best))).status).toBe(401);
  expect((await send('stripe:vip:1', signed(best, { by: vip }))).status).toBe(202);
  // It is another key than that of the prefix, so that nobody is let in.
  for (const path of ['a%2Fb:17', 'a/b:17', '%E0%A4%A', 'stripe', ''])
    expect([path, (await send(path, signed(OF_17))).status]).toEqual([path, 401]);
});

it('refuses secrets that are none', () => {
  for (const wrong of [
    { ...signedEvents[0], secret: 'short' },
    { ...signedEvents[0], secret: [] },
    { ...signedEvents[0], tenant: '' },
  ])
    expect(() => api({ signedEvents: [wrong as never] })).toThrow(/signedEvents/);
});
