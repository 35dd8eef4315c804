/** The statements that claim runs. Those for any number of agents have a text for each number. */
import { MOST_COMPARED, MOST_ENTRIES_ALONG, MOST_PASSED, MOST_TENANTS } from '../rules.ts';
import { NOW_1, TIME_1 } from './database.ts';
import { HAS_ENDED, IS_LEASED, IS_PARKED, IS_READY, IS_TIMED, RUN_COLUMNS } from './run-rows.ts';

// A claimed run is due again when its lease is over, until a release parks it. Who had it may be at work still, unless it is known to be dead:
// that is told by the process that claims, after the claim.
const GRANTED = `
  UPDATE {runs} AS claimed SET owner = $2, lease_until = ceil(found.time + $3::float8)::bigint,
    work_left_at = CASE WHEN found.owner IS NOT NULL THEN ceil(found.time)::bigint ELSE found.work_left_at END,
    fence = claimed.fence + 1, wake_at = 0, problem = NULL,
    status = CASE WHEN claimed.status IN ('pending', 'waiting') THEN 'running' ELSE claimed.status END
  FROM found WHERE claimed.key = found.key RETURNING found.*`;
// Nobody adds to them while the runs are leased, and the texts have no line breaks: they are JSON.
const GRANTED_ALONG = `${GRANTED}, CASE WHEN found.head <= ${MOST_ENTRIES_ALONG} THEN (
    SELECT string_agg(body, E'\\n' ORDER BY seq) FROM {entries} WHERE run = found.key
  ) END AS bodies`;
const COLUMNS = RUN_COLUMNS.replaceAll('\n', ' ');
const IS_WANTED = 'tenant <> ALL($5::text[]) AND id <> ALL($6::text[])';
/**
 * The agents that are asked for, in an array that is a parameter. Each is named, so that the server knows how many there are before it has the array:
 * else a plan that is kept looks ten times as dear to it, and it plans each claim anew, which takes longer than the claim.
 */
const askedOf = (array: string, count: number): string =>
  `unnest(ARRAY[${Array.from({ length: count }, (_, index) => `(${array}::text[])[${index + 1}]`).join(', ')}]::text[]) AS asked (agent)`;
/** A text for each number of agents. Where none is asked for, it is the one for a single agent, whose name is NULL then: a text that names none gives its parameter no type. */
type PerCount = (agents: readonly string[]) => string;
const perCount = (make: (count: number) => string): PerCount => {
  const texts = new Map<number, string>();
  return ({ length }) => {
    const count = Math.max(1, length);
    const text = texts.get(count) ?? make(count);
    texts.set(count, text);
    return text;
  };
};
// What is locked is given as it is then, which may be newer than what the statement sees of the table.
const firstInLine = (agent: string, where: string): string => `
  SELECT ${COLUMNS}, priority FROM {runs} AS runs WHERE ${agent} AND ${where} AND ${IS_WANTED} ORDER BY priority DESC, key LIMIT $7::int
  FOR UPDATE SKIP LOCKED`;
const isOver = (since: string): string => `coalesce(${since}, 0) BETWEEN 1 AND ${NOW_1}`;
const IS_COME = isOver('wake_at');
const IS_TIMED_STILL = 'owner IS NULL AND coalesce(waits, 0) = 0';
/**
 * Some of a backlog are read in the order of an index: twice as many as are wanted beside those that are compared, since what others hold just now is passed over. @param since the time from which on a run is due. @param due what the index
 * says. @param still the same in words that fit no index, so that the rows are found by their keys.
 */
const dueLongest = (agent: string, since: string, due: string, still: string): string => `
  key = ANY(ARRAY(
    SELECT key FROM {runs} AS runs WHERE ${agent} AND ${due} AND ${since} <= ${NOW_1} AND ${IS_WANTED}
    ORDER BY ${since} LIMIT 2 * $7::int + ${MOST_COMPARED}
  )) AND ${isOver(since)} AND NOT (${HAS_ENDED}) AND ${still}`;
type Line = (agent: string) => string;
const ofEach = (count: number, where: Line): string => `
  SELECT line.* FROM ${askedOf('$4', count)} CROSS JOIN LATERAL (${firstInLine('runs.agent = asked.agent', where('runs.agent = asked.agent'))}) AS line`;
const ofAll = (agent: string, where: string): string => `SELECT * FROM (${firstInLine(agent, where)}) AS line`;
/** For each agent one look into the index of what is ready, and one into that of times; then the leases that are over. What somebody else holds just now is passed over. */
const claimDue = (count: number | undefined, others?: { readonly ready: string; readonly timed: string }): string => {
  const leased = count === undefined ? '$4::text[] IS NULL' : 'agent = ANY($4::text[])';
  const each = (where: Line): string => (count === undefined ? ofAll(leased, where(leased)) : ofEach(count, where));
  const timed = (agent: string): string => dueLongest(agent, 'wake_at', IS_TIMED, IS_TIMED_STILL);
  return `
  WITH RECURSIVE ${others?.ready ?? `ready AS (${each(() => IS_READY)})`},
  ${others?.timed ?? `timed AS (${each(timed)})`},
  over AS (${ofAll(leased, dueLongest(leased, 'lease_until', IS_LEASED, 'num_nonnulls(owner) = 1'))}),
  found AS (
    SELECT *, ${TIME_1} AS time FROM (
      SELECT * FROM ready UNION ALL SELECT * FROM timed UNION ALL SELECT * FROM over
    ) AS due
    ORDER BY priority DESC, key LIMIT $7::int
  )
  ${others === undefined ? GRANTED_ALONG : grantedLooking(GRANTED_ALONG)}`;
};
export const CLAIM_DUE: string = claimDue(undefined);
export const CLAIM_DUE_OF: PerCount = perCount(claimDue);
/** So many are looked at for it in one claim; the next one goes on behind them. */
const MOST_LOOKED_AT = 200;
/** What somebody else holds just now is passed over: so many more are tried. */
const MORE_TRIED = 3;
const nextTenant = (agent: string, is: string, after: string): string => `
  SELECT tenant FROM {runs} AS runs WHERE runs.agent = ${agent} AND ${is} AND tenant > ${after} ORDER BY tenant LIMIT 1`;
/** From one tenant that stands in an index to the next, so that a backlog of one is not read for the sake of another. @param where it is gone through. */
const tenants = (name: string, count: number, is: string, after: string, where: string): string => `
  ${name} (agent, tenant) AS (
    SELECT asked.agent, first.tenant FROM ${askedOf('$4', count)} CROSS JOIN LATERAL (${nextTenant('asked.agent', is, after)}) AS first WHERE ${where}
    UNION ALL
    SELECT ${name}.agent, next.tenant FROM ${name} CROSS JOIN LATERAL (${nextTenant(`${name}.agent`, is, `${name}.tenant`)}) AS next
  )`;
const readyOfOthers = (count: number): string => `
  ${tenants('tenants', count, IS_READY, '$8', 'true')},
  first_of AS (
    SELECT line.key, line.priority FROM (
      SELECT * FROM tenants WHERE tenant <> ALL($5::text[]) LIMIT ${MOST_TENANTS}
    ) AS others CROSS JOIN LATERAL (
      SELECT key, priority FROM {runs} AS runs
      WHERE runs.agent = others.agent AND runs.tenant = others.tenant AND ${IS_READY} AND id <> ALL($6::text[])
      ORDER BY priority DESC, key LIMIT $7::int
    ) AS line
    ORDER BY line.priority DESC, line.key LIMIT $7::int + ${MORE_TRIED}
  ),
  ready AS (
    SELECT ${COLUMNS}, priority FROM {runs} WHERE key = ANY(ARRAY(SELECT key FROM first_of)) AND ${IS_READY}
    ORDER BY priority DESC, key LIMIT $7::int FOR UPDATE SKIP LOCKED
  )`;
/**
 * Those whose time has come, by their keys in `due_keys`: they are looked for in the order of their times, and tenant by tenant where that is a backlog
 * of tenants that are left out. @param is what the index says. @param most how many at most.
 */
const comeOfOthers = (count: number, is: string, after: string, most: string): string => `
  early AS MATERIALIZED (
    SELECT line.key, line.wake_at FROM ${askedOf('$4', count)} CROSS JOIN LATERAL (
      SELECT key, tenant, id, wake_at FROM {runs} AS runs WHERE runs.agent = asked.agent AND ${is} AND wake_at <= ${NOW_1}
      ORDER BY wake_at LIMIT ${MOST_PASSED}
    ) AS line WHERE ${IS_WANTED}
  ),
  ${tenants(
    'come_tenants',
    count,
    is,
    after,
    `NOT EXISTS (SELECT FROM early) AND EXISTS (
      SELECT FROM {runs} AS runs WHERE runs.agent = asked.agent AND ${is} AND wake_at <= ${NOW_1} ORDER BY wake_at OFFSET ${MOST_PASSED} LIMIT 1
    )`,
  )},
  looked AS MATERIALIZED (SELECT * FROM come_tenants LIMIT ${MOST_LOOKED_AT}),
  steps AS (SELECT max(tenant) AS last, count(*) AS taken FROM looked GROUP BY agent),
  behind AS (
    SELECT line.key, line.wake_at FROM (
      SELECT looked.* FROM looked CROSS JOIN LATERAL (
        SELECT wake_at FROM {runs} AS runs WHERE runs.agent = looked.agent AND runs.tenant = looked.tenant AND ${is}
        ORDER BY wake_at LIMIT 1
      ) AS first WHERE first.wake_at <= ${NOW_1} AND looked.tenant <> ALL($5::text[]) LIMIT ${MOST_TENANTS}
    ) AS others CROSS JOIN LATERAL (
      SELECT key, wake_at FROM {runs} AS runs
      WHERE runs.agent = others.agent AND runs.tenant = others.tenant AND ${is} AND wake_at <= ${NOW_1} AND id <> ALL($6::text[])
      ORDER BY wake_at LIMIT ${most}
    ) AS line
  ),
  due_keys AS (
    SELECT key FROM (SELECT * FROM early UNION ALL SELECT * FROM behind) AS come ORDER BY wake_at LIMIT ${most}
  )`;
/** What is claimed, with the tenant up to which it was looked, where not all were looked at: also in a row without a run. */
const grantedLooking = (granted: string): string => `,
  granted AS (${granted})
  SELECT granted.*, looks.looked_to FROM (
    SELECT CASE WHEN (SELECT count(*) FROM looked) = ${MOST_LOOKED_AT} THEN min(last) END AS looked_to FROM steps
    WHERE taken = (SELECT max(taken) FROM steps)
  ) AS looks LEFT JOIN granted ON true`;
const COMPARED = `2 * $7::int + ${MOST_COMPARED}`;
/** With the tenants behind which those are looked for that have something ready (`$8`), and whose time has come (`$9`). */
export const CLAIM_DUE_OF_OTHERS: PerCount = perCount((count) =>
  claimDue(count, {
    ready: readyOfOthers(count),
    timed: `${comeOfOthers(count, IS_TIMED, '$9', COMPARED)},
  timed AS (
    SELECT ${COLUMNS}, priority FROM {runs} AS runs
    WHERE key = ANY(ARRAY(SELECT key FROM due_keys)) AND ${IS_COME} AND NOT (${HAS_ENDED}) AND ${IS_TIMED_STILL}
    ORDER BY priority DESC, key LIMIT $7::int FOR UPDATE SKIP LOCKED
  )`,
  }),
);
/** A run that nobody has. */
export const CLAIM_FREE: string = `
  WITH found AS (
    SELECT ${COLUMNS}, ${TIME_1} AS time FROM {runs} WHERE id = $4 AND owner IS NULL AND status IN ('pending', 'running', 'waiting', 'paused')
      AND NOT (fence = 0 AND signals = 0 AND coalesce(wake_at, 0) > ${NOW_1})
    FOR UPDATE
  )
  ${GRANTED}`;
export const CLAIM_KEY: string = `
  WITH found AS (SELECT ${COLUMNS}, ${TIME_1} AS time FROM {runs} WHERE key = $4) ${GRANTED}`;
/** The limit is one for each agent first, so that an index gives as many and no more. */
export const CLAIM_PARKED: PerCount = perCount(
  (count) => `
  WITH due AS (
    SELECT line.* FROM ${askedOf('$4', count)} CROSS JOIN LATERAL (
      SELECT ${COLUMNS} FROM {runs} AS runs WHERE runs.agent = asked.agent AND ${IS_PARKED} AND wake_at <= ${NOW_1} AND ${IS_WANTED}
      ORDER BY wake_at LIMIT $7::int FOR UPDATE SKIP LOCKED
    ) AS line
  ),
  found AS (SELECT *, ${TIME_1} AS time FROM due ORDER BY wake_at LIMIT $7::int)
  ${GRANTED_ALONG}`,
);
/** With the tenant behind which those are looked for whose time has come (`$8`). */
export const CLAIM_PARKED_OF_OTHERS: PerCount = perCount(
  (count) => `
  WITH RECURSIVE ${comeOfOthers(count, IS_PARKED, '$8', `$7::int + ${MORE_TRIED}`)},
  found AS (
    SELECT *, ${TIME_1} AS time FROM (
      SELECT ${COLUMNS} FROM {runs} AS runs
      WHERE key = ANY(ARRAY(SELECT key FROM due_keys)) AND num_nulls(owner) = 1 AND status IN ('waiting', 'paused')
        AND coalesce(wake_at, ${NOW_1} + 1) <= ${NOW_1} AND coalesce(waits, 0) = 0
      ORDER BY wake_at LIMIT $7::int FOR UPDATE SKIP LOCKED
    ) AS due
  )
  ${grantedLooking(GRANTED_ALONG)}`,
);
export const CLAIM_NAMED: string = `
  WITH due AS (
    SELECT ${COLUMNS} FROM {runs} AS runs WHERE id = ANY($8::text[]) AND agent = ANY($4::text[]) AND ${IS_PARKED} AND ${IS_WANTED}
    ORDER BY wake_at LIMIT $7::int FOR UPDATE SKIP LOCKED
  ),
  found AS (SELECT *, ${TIME_1} AS time FROM due)
  ${GRANTED_ALONG}`;
export const NEXT_DUE: PerCount = perCount(
  (count) => `
  SELECT min(line.wake_at) - ${NOW_1} AS in_ms FROM ${askedOf('$2', count)} CROSS JOIN LATERAL (
    SELECT wake_at FROM {runs} AS runs WHERE runs.agent = asked.agent AND ${IS_PARKED} ORDER BY wake_at LIMIT 1
  ) AS line`,
);
