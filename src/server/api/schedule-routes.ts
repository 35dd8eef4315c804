/** What starts runs again and again. Of their tenant's schedules, visitors reach their own; an admin all. */
import { defined, PilotageError } from '#core';
import type { ScheduleRecord } from '#runtime';
import { RequestRefused } from '../problem.ts';
import type { Visit } from '../visit.ts';
import { jsonAnswer } from './mount.ts';
import * as gives from './reply-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRoute, jsonReply, none, route } from './route.ts';
import { tenantOf, withNamed } from './visiting.ts';

const tag = 'schedules';

interface OfTenant {
  readonly tenant?: string;
}

function isOwn(visit: Visit, { user, session }: ScheduleRecord): boolean {
  const only = visit.access.identity.session;
  return visit.isAdmin || (user === visit.owner.user && (only === undefined || only === session));
}

/** @throws PilotageError `schedule_not_found` also for one of somebody else. */
async function own(visit: Visit, id: string, query: OfTenant): Promise<ScheduleRecord> {
  const tenant = tenantOf(visit, query);
  const found = await visit.runtime.schedules.get(id, { tenant });
  if (found !== undefined && isOwn(visit, found)) return found;
  throw new PilotageError('schedule_not_found', `There is no schedule ${id}.`);
}

const put = route('put /schedules/{schedule}', {
  tag,
  action: 'manage',
  summary: 'Stores a schedule; the same one again changes nothing.',
  body: asks.putSchedule,
  reply: jsonReply(gives.schedule),
  handle: async ({ visit, params, body }) => {
    const { schedules } = visit.runtime;
    const { tenant } = visit.owner;
    const there = await schedules.get(params.schedule, { tenant });
    if (there !== undefined && !isOwn(visit, there))
      throw new RequestRefused('forbidden', `The id ${params.schedule} cannot be used. Take another one.`);
    const only = visit.access.identity.session;
    if (only !== undefined && body.session !== only)
      throw new RequestRefused('forbidden', `You may schedule messages to the session ${only} only.`);
    await withNamed(body.agent, () => visit.mustStart(body.agent, body.session));
    // Another user than the one who had it before is not meant.
    const identity = { tenant, user: there?.user ?? visit.owner.user };
    return schedules.put({ ...body, id: params.schedule, identity, scopes: visit.scopes });
  },
});

const list = route('get /schedules', {
  tag,
  action: 'read',
  summary: 'The schedules of the visitor by their ids; of an admin those of the tenant.',
  query: asks.listOfTenant,
  reply: jsonReply(gives.schedules),
  handle: async ({ visit, query }) => {
    const { limit = 50 } = query;
    const tenant = tenantOf(visit, query);
    const items: ScheduleRecord[] = [];
    let { after } = query;
    // Those of others are passed over, and do not show in the size of a page.
    for (;;) {
      const page = await visit.runtime.schedules.list({ tenant, limit, ...defined({ after }) });
      for (const schedule of page) {
        if (items.length === limit) return { items, next: items.at(-1)?.id ?? '' };
        if (isOwn(visit, schedule)) items.push(schedule);
        after = schedule.id;
      }
      if (page.length < limit) return { items };
    }
  },
});

const get = route('get /schedules/{schedule}', {
  tag,
  action: 'read',
  summary: 'A schedule as it is now.',
  query: asks.ofTenant,
  reply: jsonReply(gives.schedule),
  handle: ({ visit, params, query }) => own(visit, params.schedule, query),
});

const pause = route('post /schedules/{schedule}/pause', {
  tag,
  action: 'manage',
  summary: 'It does not fire until it is resumed.',
  query: asks.ofTenant,
  reply: jsonReply(gives.schedule),
  handle: async ({ visit, params, query }) => {
    const { id, tenant } = await own(visit, params.schedule, query);
    return visit.runtime.schedules.pause(id, { tenant });
  },
});

const resume = route('post /schedules/{schedule}/resume', {
  tag,
  action: 'manage',
  summary: 'It fires again, from now on.',
  query: asks.ofTenant,
  reply: jsonReply(gives.schedule),
  handle: async ({ visit, params, query }) => {
    const { id, tenant } = await own(visit, params.schedule, query);
    return visit.runtime.schedules.resume(id, { tenant });
  },
});

const trigger = route('post /schedules/{schedule}/trigger', {
  tag,
  summary: 'Fires it now, beside its times.',
  query: asks.ofTenant,
  reply: jsonReply(gives.started, 201),
  handle: async ({ visit, params, query, path }) => {
    const { id, tenant, agent, session } = await own(visit, params.schedule, query);
    await visit.mustStart(agent, session);
    const run = await visit.runtime.schedules.trigger(id, { tenant });
    const { identity } = await run.record();
    const headers = { location: `${path}/runs/${encodeURIComponent(run.id)}` };
    return jsonAnswer({ run: run.id, session: identity.session }, 201, headers);
  },
});

const remove = route('delete /schedules/{schedule}', {
  tag,
  action: 'manage',
  summary: 'Deletes the schedule; its runs stay.',
  query: asks.ofTenant,
  reply: none,
  handle: async ({ visit, params, query }) => {
    const { id, tenant } = await own(visit, params.schedule, query);
    await visit.runtime.schedules.delete(id, { tenant });
    return undefined;
  },
});

export const SCHEDULE_ROUTES: readonly ApiRoute[] = [put, list, get, pause, resume, trigger, remove];
