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

it('takes signed events from nobody who does not know the secret, each once', async () => {
  const { ask } = await serveApi(world({ planner: script(finish()) }), { signedEvents });
  const body = JSON.stringify({ paid: true });
  const send = (key: string, headers: Record<string, string>, text = body, who = '') =>
    ask(`/events/${key}`, { method: 'POST', body: text, headers, who });
  const signed = (id: string, at = new Date(), by = secret) => ({
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': `v1a,AAAA ${new Webhook(by).sign(id, at, body)}`,
  });
  const first = await send('stripe:order-17', signed('msg_1'));
  expect([first.status, await first.json()]).toEqual([
    202,
    expect.objectContaining({ id: 'msg_1', isNew: true, kept: true }),
  ]);
  expect(await (await send('stripe%3Aorder-17', signed('msg_1'))).json()).toMatchObject({ isNew: false });
  const refused = [
    send('stripe:order-17', {}),
    send('stripe:order-17', {}, body, 'acme/boss/admin'),
    send('stripe:order-17', signed('msg_2'), `${body} `),
    send('stripe:order-17', signed('msg_2', new Date(Date.now() - 600_000))),
    send('stripe:order-17', signed('msg_2', new Date(Date.now() + 600_000))),
    send(
      'stripe:order-17',
      signed('msg_2', new Date(), `whsec_${Buffer.from('another secret, also long').toString('base64')}`),
    ),
    send('stripe:order-17', { ...signed('msg_2'), 'webhook-id': 'msg_3' }),
    send('other:order-17', signed('msg_2')),
    send('stripe', signed('msg_2')),
  ];
  for (const answer of await Promise.all(refused)) expect(answer.status).toBe(401);
  expect((await send('stripe:order-17/../../runs', signed('msg_4'))).status).not.toBe(200);
});

it('refuses secrets that are none', () => {
  for (const wrong of [
    { ...signedEvents[0], secret: 'short' },
    { ...signedEvents[0], secret: [] },
    { ...signedEvents[0], tenant: '' },
  ])
    expect(() => api({ signedEvents: [wrong as never] })).toThrow(/signedEvents/);
});
