/** What is kept of a user beside runs: the rules of their answers, and what agents remember. Of others nothing is found; an admin names whom they mean. */
import { type ApprovalRule, defined, PilotageError, runOfRule } from '#core';
import { RequestRefused } from '../problem.ts';
import type { Visit } from '../visit.ts';
import * as gives from './reply-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRoute, jsonReply, none, route } from './route.ts';
import { assertAdmin, cursorIn, cursorOf, listedFor, type Owner } from './visiting.ts';

interface User {
  readonly tenant: string;
  readonly user: string;
}

/** @throws PilotageError `run_not_found` for anybody but the visitor, unless that is an admin. */
function userIn(visit: Visit, { tenant, user }: Owner): User {
  if (listedFor(visit, defined({ tenant, user })) !== undefined)
    return { ...visit.owner, ...defined({ tenant, user }) };
  throw new PilotageError('run_not_found', `There is nothing of the user ${user ?? tenant}.`);
}

/** Those that hold for a run, or those of a user; for a visitor of one session those that hold there. */
async function rulesFor(visit: Visit, of: Owner & { readonly run?: string }): Promise<readonly ApprovalRule[]> {
  const { rules } = visit.runtime;
  if (of.run !== undefined) return rules.list((await visit.run(of.run)).record.identity);
  const session = visit.access.identity.session ?? of.session;
  return rules.list({ ...userIn(visit, of), ...defined({ session }) });
}

const rules = route('get /rules', {
  tag: 'rules',
  action: 'read',
  summary: 'What answers to questions hold for questions to come, the newest first: of a user, a session, or one run.',
  query: asks.listRules,
  reply: jsonReply(gives.ruleList),
  handle: async ({ visit, query }) => ({ items: await rulesFor(visit, query) }),
});

/** @throws PilotageError `payload_invalid` when there is no such rule, or the visitor may not know of it. */
async function ruleOf(visit: Visit, id: string, of: Owner): Promise<ApprovalRule> {
  const run = runOfRule(id);
  const isShown = run !== undefined && (await visit.sees(run));
  const there = [...(await rulesFor(visit, of)), ...(isShown ? await rulesFor(visit, { run }) : [])];
  const found = there.find((rule) => rule.id === id);
  if (found !== undefined) return found;
  throw new PilotageError('payload_invalid', `There is no rule ${id}: it was revoked, is over, or never was.`);
}

const revoke = route('delete /rules/{rule}', {
  tag: 'rules',
  action: 'answer',
  summary: 'Takes a rule back: what it would have answered is asked again.',
  query: asks.ofVisited,
  reply: none,
  handle: async ({ visit, params, query }) => {
    const { id, scope } = await ruleOf(visit, params.rule, query);
    if (scope === 'user' && visit.access.identity.session !== undefined)
      throw new RequestRefused(
        'forbidden',
        'The rule holds in other sessions, too, and you may take back those of yours.',
      );
    // A rule of one run is taken back by a control of that run.
    const { session = '-' } = scope === 'run' ? (await visit.run(runOfRule(id) ?? '', 'answer')).record.identity : {};
    await visit.runtime.rules.revoke(id, { as: visit.caller(session) });
    return undefined;
  },
});

/** @throws RequestRefused `forbidden` for a visitor of one session: what is remembered may come from any. */
function memoryOf(visit: Visit, of: Owner): ReturnType<typeof visit.runtime.store.of> {
  if (visit.access.identity.session === undefined) return visit.runtime.store.of(userIn(visit, of));
  throw new RequestRefused('forbidden', 'What is remembered of a user is not of one session alone.');
}

const memory = route('get /memory', {
  tag: 'memory',
  action: 'read',
  summary: 'What is remembered of the user, in a namespace and below it, with the run and the step that it comes from.',
  query: asks.listMemory,
  reply: jsonReply(gives.memory),
  handle: async ({ visit, query }) => {
    const { namespace = [], limit = 50 } = query;
    const after = cursorIn(query.after, asks.placeInMemory);
    const found = await memoryOf(visit, query).list(namespace, { limit, ...defined({ after }) });
    const last = found.length < limit ? undefined : found.at(-1);
    return { items: found, ...defined({ next: last && cursorOf({ namespace: last.namespace, key: last.key }) }) };
  },
});

const remembered = route('get /memory/{key}', {
  tag: 'memory',
  action: 'read',
  summary: 'What is remembered under a key of a namespace, or null.',
  query: asks.inMemory,
  reply: jsonReply(gives.remembered),
  handle: async ({ visit, params, query }) => ({
    item: (await memoryOf(visit, query).get(query.namespace ?? [], params.key)) ?? null,
  }),
});

const forget = route('delete /memory/{key}', {
  tag: 'memory',
  action: 'manage',
  summary: 'Forgets what is remembered under a key of a namespace.',
  query: asks.inMemory,
  reply: none,
  handle: ({ visit, params, query }) =>
    memoryOf(visit, query).delete(query.namespace ?? [], params.key) as Promise<undefined>,
});

const erase = route('post /erase', {
  tag: 'memory',
  action: 'manage',
  summary:
    'Erases all content of a user, for good: of runs, files, titles and memory. For an admin. What is left can be erased again.',
  body: asks.erasing,
  reply: jsonReply(gives.erased),
  handle: async ({ visit, body }) => {
    assertAdmin(visit, 'erase the content of a user');
    const { left, ...erased } = await visit.runtime.erase({ tenant: visit.owner.tenant, ...body });
    return { ...erased, left: left.map(({ run, error: { code, message } }) => ({ run, error: { code, message } })) };
  },
});

export const USER_ROUTES: readonly ApiRoute[] = [rules, revoke, memory, remembered, forget, erase];
