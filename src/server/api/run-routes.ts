/** Runs: begun, listed, looked at, waited for, forked and compared. */
import { createHash } from 'node:crypto';
import { defined, newRunId } from '#core';
import { hasEnded } from '#journal';
import type { AgentRecord, StartOptions } from '#runtime';
import { compareRuns } from '#state';
import { RequestRefused } from '../problem.ts';
import type { Visit } from '../visit.ts';
import { withinTime } from '../within-time.ts';
import { jsonAnswer } from './mount.ts';
import * as gives from './reply-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRoute, jsonReply, route } from './route.ts';
import {
  assertAdmin,
  assertOwner,
  beginningIn,
  filesIn,
  labelsIn,
  listedFor,
  publicRecord,
  shownPage,
  withNamed,
} from './visiting.ts';

const tag = 'runs';

const start = route('post /runs', {
  tag,
  summary:
    'Starts a run. With the header Idempotency-Key the same request again gives the same run, and another one is refused.',
  headers: ['Idempotency-Key'],
  body: asks.runStart,
  reply: jsonReply(gives.started, 201),
  handle: async ({ visit, body, context, path }) => {
    const { agent } = body;
    const key = keyIn(context.req.header('idempotency-key'));
    const session = sessionFor(visit, body.session, key);
    await withNamed(agent, () => visit.mustStart(agent, session));
    const identity = { ...visit.owner, session, run: newRunId() };
    const options = startOptionsIn(visit, body);
    const run = await visit.runtime.start(body.query, {
      ...options,
      identity,
      scopes: visit.scopes,
      ...defined({ idempotencyKey: key }),
    });
    const headers = { location: `${path}/runs/${encodeURIComponent(run.id)}` };
    return jsonAnswer({ run: run.id, session }, 201, headers);
  },
});

/** @throws RequestRefused `request_invalid`. */
function keyIn(header: string | undefined): string | undefined {
  if (header === undefined || (header.trim() !== '' && header.length <= 256)) return header;
  throw new RequestRefused('request_invalid', 'The header Idempotency-Key has 1 to 256 characters.');
}

/** A run that names no session has one of its own. @throws RequestRefused `forbidden`. */
function sessionFor(visit: Visit, asked: string | undefined, key: string | undefined): string {
  const only = visit.access.identity.session;
  if (only !== undefined && asked !== undefined && asked !== only)
    throw new RequestRefused('forbidden', `You may start runs in the session ${only} only.`);
  if (only !== undefined || asked !== undefined) return only ?? asked ?? '';
  return key === undefined ? newRunId().replace('run_', 'session_') : `session_${digestOf(key)}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** @throws RequestRefused `forbidden` or `request_invalid`. */
function startOptionsIn(visit: Visit, body: asks.StartBody): StartOptions {
  const { inputs, author, history, conversation, clientTools, at, singleton, debounce, throttle, rate } = body;
  // Keys of the runtime are those of a whole tenant: of a visitor they are their own.
  const own = <K extends { readonly key: string }>(given: K | undefined): K | undefined =>
    given === undefined || typeof given.key !== 'string' || given.key.trim() === ''
      ? given
      : { ...given, key: `${digestOf(visit.owner.user)} ${given.key}` };
  return {
    ...beginningIn(visit, body),
    ...defined({
      history,
      conversation,
      clientTools,
      at,
      author: author as StartOptions['author'],
      inputs: filesIn(inputs),
    }),
    ...defined({ singleton: own(singleton), debounce: own(debounce), throttle: own(throttle), rate: own(rate) }),
  };
}

const list = route('get /runs', {
  tag,
  action: 'read',
  summary: 'The runs of the visitor, newest first; of an admin those of the whole journal.',
  query: asks.listRuns,
  reply: jsonReply(gives.records),
  handle: async ({ visit, query }) => {
    const { status, agent, label, parent, schedule, text, since, limit = 50, after } = query;
    const owner = listedFor(visit, query);
    if (owner === undefined) return { items: [] };
    const wanted = { status, agent, labels: labelsIn(label), parent, schedule, text, since };
    const page = await shownPage(
      limit,
      after,
      (place) => visit.runtime.list({ ...owner, ...defined({ ...wanted, after: place }), limit }),
      ({ identity }) => identity.run,
      (record) => visit.allows('read', record),
    );
    return { ...page, items: page.items.map(publicRecord) };
  },
});

const get = route('get /runs/{run}', {
  tag,
  action: 'read',
  summary: 'The run as lists have it.',
  reply: jsonReply(gives.record),
  handle: (_, { record }) => publicRecord(record),
});

const state = route('get /runs/{run}/state', {
  tag,
  action: 'read',
  summary: 'The run as it stands now: steps, pauses, tasks, plan, usage.',
  reply: jsonReply(gives.snapshot),
  handle: (_, { run }) => run.state(),
});

const result = route('get /runs/{run}/result', {
  tag,
  action: 'read',
  summary:
    'The result of a run that has ended or is paused, or 202 with its status when it has not until waitMs are over.',
  query: asks.waitFor,
  reply: jsonReply(gives.result, 200, gives.notYet),
  handle: async ({ visit, query, tell }, { run }) => {
    const found = await withinTime(query.waitMs ?? 0, visit.signal, (signal) => run.result({ signal }));
    if (found !== undefined) return found;
    const { status } = await run.record();
    return jsonAnswer(tell({ status: hasEnded(status) ? 'running' : status }), 202, { 'retry-after': '1' });
  },
});

const trajectory = route('get /runs/{run}/trajectory', {
  tag,
  action: 'read',
  summary: 'The run as one value, to be kept and read without the server.',
  reply: jsonReply(gives.trajectory),
  handle: (_, { run }) => run.trajectory(),
});

const plan = route('get /runs/{run}/plan', {
  tag,
  action: 'read',
  summary: 'The plan that the run carries out, or the last one, node by node.',
  reply: jsonReply(gives.plan),
  handle: async (_, { run }) => ({ plan: (await run.state()).plan }),
});

const fork = route('post /runs/{run}/fork', {
  tag,
  action: 'start',
  summary: 'Starts a run that shares the first steps of this one, and goes its own way from there.',
  body: asks.runFork,
  isBodyOptional: true,
  reply: jsonReply(gives.started, 201),
  handle: async ({ body, path }, { run, record }) => {
    const forked = await run.fork(body);
    const headers = { location: `${path}/runs/${encodeURIComponent(forked.id)}` };
    return jsonAnswer({ run: forked.id, session: record.identity.session }, 201, headers);
  },
});

const replay = route('post /runs/{run}/replay', {
  tag,
  action: 'control',
  summary:
    'Asks the planner what it would decide today at each step. Nothing is called or written; a planner with a model asks it.',
  reply: jsonReply(gives.replayReport),
  handle: ({ context }, { run }) => run.replay({ signal: context.req.raw.signal }),
});

const compare = route('get /compare', {
  tag,
  action: 'read',
  summary: 'Two runs of the visitor side by side, such as a run and its fork.',
  query: asks.compare,
  reply: jsonReply(gives.comparison),
  handle: async ({ visit, query }) => {
    const [a, b] = [await visit.run(query.a), await visit.run(query.b)];
    return compareRuns(await a.run.state(), await b.run.state());
  },
});

const agents = route('get /agents', {
  tag,
  action: 'read',
  summary: 'The agents that the visitor may start, the default one first.',
  reply: jsonReply(gives.agents),
  handle: async ({ visit }) => {
    const items: AgentRecord[] = [];
    for (const each of visit.runtime.agents) if (await visit.may('start', { agent: each.name })) items.push(each);
    return { items };
  },
});

const advance = route('post /runs/{run}/advance', {
  tag: 'platforms',
  action: 'control',
  summary: 'Drives the run for a time, here, and lets go of it: for platforms that end a request after minutes.',
  body: asks.advance,
  reply: jsonReply(gives.advancedRun),
  handle: ({ visit, body }, { run }) => {
    assertOwner(visit, 'advance a run');
    return visit.runtime.advance(run.id, body);
  },
});

const advanceDue = route('post /advance', {
  tag: 'platforms',
  action: 'manage',
  summary: 'Drives what is due of the whole journal for a time, as a cron job does. For an admin.',
  body: asks.advanceDue,
  reply: jsonReply(gives.advancedRuns),
  handle: ({ visit, body }) => {
    assertAdmin(visit, 'drive what is due of the whole journal');
    return visit.runtime.advance(body);
  },
});

export const RUN_ROUTES: readonly ApiRoute[] = [
  ...[start, list, get, state, result, trajectory, plan],
  ...[fork, replay, compare, agents, advance, advanceDue],
];
