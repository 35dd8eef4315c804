/** The scenarios that are flows: their nodes do what the tools of the others do. */
import { edge, flow, map, node } from '#flow';
import type { Json, JsonObject } from '#pilotage';
import type { Agent } from '#tools';
import { FEE, items, letter, ROOM } from './errands.ts';
import type { World } from './world.ts';

export function flowAgent(world: World): Agent {
  const policy = { timeoutMs: world.timeoutMs };
  const roomNode = roomOf(world);
  const page = node('page', { effect: 'read', execute: (): JsonObject => ({ body: world.page }) });
  const key = node('load_key', { effect: 'read', execute: (read: JsonObject): JsonObject => read });
  const fee = node('fee', {
    effect: 'once',
    policy,
    execute: ({ body = null }: JsonObject, context) => world.act('pay', FEE.args, context, { body }),
  });
  const write = node('letter', {
    effect: 'once',
    policy,
    execute: ({ body = null }: JsonObject, context) => world.act('send', letter(body).args, context),
    reconcile: (_, context) => world.lookUp(context),
  });
  return flow({
    name: 'errands',
    inputSchema: {},
    entry: page,
    exit: roomNode,
    edges: [edge(page, key), edge(key, fee), edge(fee, write), edge(write, roomNode)],
  });
}

export function mapAgent(world: World): Agent {
  const begin = node('begin', { effect: 'pure', execute: () => items(world.page) });
  const each = map('each', {
    effect: 'once',
    concurrency: 2,
    policy: { timeoutMs: world.timeoutMs },
    execute: (item: JsonObject, context) => world.act('pay', item, context),
  });
  const roomNode = roomOf(world);
  return flow({
    name: 'items',
    inputSchema: {},
    entry: begin,
    exit: roomNode,
    edges: [edge(begin, each), edge(each, roomNode)],
  });
}

function roomOf(world: World) {
  return node('room', {
    effect: 'keyed',
    policy: { timeoutMs: world.timeoutMs, retries: 3 },
    execute: (_: Json, context) => world.act('book', ROOM.args, context),
  });
}
