/**
 * Which runs are due, those first that come first. Each run that somebody may have to do something for stands in one line (see `migrations.ts`), and a claim
 * looks at the heads of some lines. What tenants have that it leaves out is not read: those of the others are gone through one by one.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { DueRequest, ParkedRequest } from '../port.ts';
import { MOST_COMPARED, MOST_PASSED, MOST_TENANTS } from '../rules.ts';
import { atMost, type PreparedStatement, prepared } from './statements.ts';

/** What a run is due for decides the line that it stands in: `woken` and `parked` are runs that were begun, and wait or are paused. */
const LINE = { ready: 0, woken: 1, timed: 2, parked: 3, leased: 4 } as const;
const READY = JSON.stringify([LINE.ready, LINE.woken]);
const LATER = JSON.stringify([LINE.timed, LINE.parked]);
const WOKEN = JSON.stringify([LINE.woken]);
const PARKED = JSON.stringify([LINE.parked]);
const ALL_LATER = JSON.stringify([LINE.timed, LINE.parked, LINE.leased]);
/** So many are looked at for it in one claim; the next one goes on behind them. */
const MOST_LOOKED_AT = 1_000;

export interface DueRun {
  readonly key: number;
  readonly priority: number;
  readonly due_at: number;
  readonly tenant: string;
}

/** Those that are asked for, or all that have a run. */
const AGENTS = `
  agents (name) AS (
    SELECT DISTINCT value FROM json_each(:agents)
    UNION ALL
    SELECT (SELECT min(agent) FROM runs WHERE line IS NOT NULL) WHERE :agents IS NULL
    UNION ALL
    SELECT (SELECT min(agent) FROM runs WHERE line IS NOT NULL AND agent > name) FROM agents
      WHERE :agents IS NULL AND name IS NOT NULL
  ),
  asked (name, place) AS (SELECT name, value FROM agents CROSS JOIN json_each(:lines))`;
const IN_LINE = 'agent = name AND line = place';
const IS_OTHERS = 'tenant NOT IN (SELECT value FROM json_each(:exceptTenants))';
const BY_TURN = 'ORDER BY priority DESC, key';
const rowsAmong = (lines: string, keys: string): string => `
  SELECT runs.key, priority, due_at, runs.tenant FROM ${lines} CROSS JOIN runs ON runs.key IN (SELECT key FROM (${keys}))`;
const ready = (further: string): string => `
  WITH RECURSIVE ${AGENTS}
  ${rowsAmong('asked', `SELECT key FROM runs WHERE ${IN_LINE} AND due_at = 0 ${further} ${BY_TURN} ${atMost(':limit')}`)}
  ${BY_TURN} ${atMost(':limit')}`;
const timeHasCome = (further: string): string => `
  WITH RECURSIVE ${AGENTS}
  ${rowsAmong(
    'asked',
    `SELECT key FROM (
      SELECT key, tenant FROM runs WHERE ${IN_LINE} AND due_at > 0 AND due_at <= :now ${further} ORDER BY due_at ${atMost(':passed')}
    ) WHERE ${IS_OTHERS} ${atMost(':limit')}`,
  )}
  ORDER BY due_at ${atMost(':limit')}`;
/** As the index says it, which has what nobody has taken: plain columns cost a change of a row less than those that are worked out. */
const OF_TENANT = `${IN_LINE} AND owner IS NULL`;
/** From one tenant that stands in the line to the next. @param where a line is gone through. */
const tenants = (where: string): string => `
  tenants (name, place, tenant) AS (
    SELECT name, place, (SELECT min(tenant) FROM runs WHERE ${OF_TENANT} AND tenant > :after) FROM asked WHERE ${where}
    UNION ALL
    SELECT name, place, (SELECT min(tenant) FROM runs WHERE ${OF_TENANT} AND tenant > tenants.tenant) FROM tenants
      WHERE tenant IS NOT NULL
  )`;
const OF_OTHER = `${OF_TENANT} AND tenant = others.tenant`;
const readyOfOthers = (further: string): string => `
  WITH RECURSIVE ${AGENTS}, ${tenants('true')},
  others AS (SELECT * FROM tenants WHERE tenant IS NOT NULL AND ${IS_OTHERS} LIMIT ${MOST_TENANTS})
  ${rowsAmong('others', `SELECT key FROM runs WHERE ${OF_OTHER} AND wake_at = 0 ${further} ${BY_TURN} ${atMost(':limit')}`)}
  ${BY_TURN} ${atMost(':limit')}`;
/** The tenants of lines in which the time of many has come, and whether that of others has. */
const TENANTS_LATER = `
  WITH RECURSIVE ${AGENTS},
  ${tenants(`EXISTS (SELECT 1 FROM runs WHERE ${IN_LINE} AND due_at > 0 AND due_at <= :now LIMIT 1 OFFSET CAST(:passed AS INTEGER))`)}
  SELECT name, place, tenant,
    ${IS_OTHERS} AND (SELECT min(wake_at) FROM runs WHERE ${OF_TENANT} AND tenant = tenants.tenant) <= :now AS come
  FROM tenants WHERE tenant IS NOT NULL LIMIT ${MOST_LOOKED_AT}`;
const timeHasComeOf = (further: string): string => `
  WITH others AS (SELECT value ->> 0 AS name, value ->> 1 AS place, value ->> 2 AS tenant FROM json_each(:others))
  ${rowsAmong(
    'others',
    `SELECT key FROM runs WHERE ${OF_OTHER} AND wake_at > 0 AND wake_at <= :now ${further} ORDER BY wake_at ${atMost(':limit')}`,
  )}
  ORDER BY due_at ${atMost(':limit')}`;
const NEXT_DUE = `
  SELECT min((
    SELECT due_at FROM runs WHERE agent = agents.value AND line = places.value ORDER BY due_at LIMIT 1
  )) AS at FROM json_each(:agents) AS agents CROSS JOIN json_each(:lines) AS places`;
/** Leases that end later than any lease can by the own clock. */
const FIND_FAR = `
  WITH RECURSIVE ${AGENTS}
  SELECT key, fence, lease_until AS until FROM asked CROSS JOIN runs ON ${IN_LINE} AND due_at > :far`;
/** Those that a claim leaves to others, whosever they are. */
const PASSED_OVER = 'AND key NOT IN (SELECT key FROM temp.passed_over)';

type Looks = ReturnType<typeof looksOn>;

function looksOn(db: DatabaseSync, further: string) {
  const sql = prepared(db);
  return {
    ready: sql(ready(further)),
    readyOfOthers: sql(readyOfOthers(further)),
    timeHasCome: sql(timeHasCome(further)),
    timeHasComeOf: sql(timeHasComeOf(further)),
  } satisfies Record<string, PreparedStatement>;
}

export interface FarRow {
  readonly key: number;
  readonly fence: number;
  readonly until: number;
}

/** A tenant that has something in a line. */
interface Look {
  readonly name: string;
  readonly place: number;
  readonly tenant: string;
  /** 1: it is not left out, and the time of a run has come. */
  readonly come: number;
}

type Wanted = Pick<DueRequest, 'agents' | 'exceptTenants' | 'exceptRuns' | 'limit'>;

const NOBODY_SERVED = { ready: '', later: '' };

export class SqliteDue {
  readonly #looks: Looks;
  readonly #looksPast: Looks;
  readonly #tenantsLater: PreparedStatement;
  readonly #nextDue: PreparedStatement;
  readonly #findFar: PreparedStatement;
  /** The tenants that were served last, when some were left out, of what was ready and of what had a time. */
  readonly #last = { due: NOBODY_SERVED, parked: NOBODY_SERVED };

  constructor(db: DatabaseSync) {
    this.#looks = looksOn(db, '');
    this.#looksPast = looksOn(db, PASSED_OVER);
    this.#tenantsLater = prepared(db)(TENANTS_LATER);
    this.#nextDue = prepared(db)(NEXT_DUE);
    this.#findFar = prepared(db)(FIND_FAR);
  }

  /** Those that are due, the highest priority first, then the oldest. @param claims they are claimed, and their tenants served. */
  due(request: DueRequest, now: number, claims: boolean): readonly DueRun[] {
    const rows = this.#find(request, { first: READY, later: ALL_LATER, walked: LATER }, now, 'due', claims);
    return rows.toSorted(byTurn).slice(0, request.limit);
  }

  /** Those that were parked, and whose time has come or that were told something, which go first. */
  parked(request: ParkedRequest, now: number): readonly DueRun[] {
    const rows = this.#find(request, { first: WOKEN, later: PARKED, walked: PARKED }, now, 'parked', true);
    return rows.toSorted((left, right) => left.due_at - right.due_at).slice(0, request.limit);
  }

  #find(
    { agents, exceptTenants = [], exceptRuns = [], limit }: Wanted,
    lines: { readonly first: string; readonly later: string; readonly walked: string },
    now: number,
    which: 'due' | 'parked',
    claims: boolean,
  ): readonly DueRun[] {
    const sql = exceptRuns.length > 0 ? this.#looksPast : this.#looks;
    const named = agents === undefined ? null : JSON.stringify(agents);
    const first = { agents: named, lines: lines.first, limit };
    const compared = which === 'due' ? Math.max(limit, MOST_COMPARED) : limit;
    const excepted = JSON.stringify(exceptTenants);
    const later = { agents: named, lines: lines.later, now, exceptTenants: excepted, limit: compared };
    if (exceptTenants.length === 0) {
      return [...sql.ready().all<DueRun>(first), ...sql.timeHasCome().all<DueRun>({ ...later, passed: compared })];
    }
    const last = this.#last[which];
    const ready = (after: string): DueRun[] =>
      sql.readyOfOthers().all<DueRun>({ ...first, exceptTenants: excepted, after });
    const found = orFromTheFirst(last.ready, ready);
    const passed = Math.max(compared, MOST_PASSED);
    const early = sql.timeHasCome().all<DueRun>({ ...later, passed });
    const walk = (after: string): Look[] =>
      this.#tenantsLater().all<Look>({
        agents: named,
        lines: lines.walked,
        exceptTenants: excepted,
        now,
        passed,
        after,
      });
    const looked = early.length > 0 ? [] : orFromTheFirst(last.later, walk);
    const come = looked.filter((look) => look.come === 1).slice(0, MOST_TENANTS);
    const others = JSON.stringify(come.map(({ name, place, tenant }) => [name, place, tenant]));
    const behind = come.length === 0 ? [] : sql.timeHasComeOf().all<DueRun>({ others, now, limit: compared });
    const rows = [...found, ...early, ...behind];
    // What was only looked at is to be found again.
    if (claims || rows.length === 0)
      this.#last[which] = {
        ready: lastOf(found),
        later: come.length === MOST_TENANTS ? lastOf(come) : lookedTo(looked),
      };
    return rows;
  }

  /** In how many milliseconds the first parked run of these agents is due. */
  next(agents: readonly string[], now: number): number | undefined {
    const lines = JSON.stringify([LINE.woken, LINE.parked]);
    const { at } = this.#nextDue().get<{ at: number | null }>({ agents: JSON.stringify(agents), lines }) ?? {};
    return at === undefined || at === null ? undefined : at - now;
  }

  /** Leases that end after that. */
  leasedUntilAfter(far: number, agents: readonly string[] | undefined): readonly FarRow[] {
    const named = agents === undefined ? null : JSON.stringify(agents);
    return this.#findFar().all<FarRow>({ agents: named, lines: JSON.stringify([LINE.leased]), far });
  }
}

/** The highest priority first, then the oldest. */
function byTurn(left: DueRun, right: DueRun): number {
  return right.priority - left.priority || left.key - right.key;
}

/** From behind the tenant that was served last, and from the first one where there is nothing. */
function orFromTheFirst<Row>(last: string, find: (after: string) => readonly Row[]): readonly Row[] {
  const rows = find(last);
  return rows.length === 0 && last !== '' ? find('') : rows;
}

/** The last of these tenants by name. */
function lastOf(rows: readonly { readonly tenant: string }[]): string {
  return rows.reduce((most, { tenant }) => (tenant > most ? tenant : most), '');
}

/** The tenant up to which each line was gone through; empty where all were. */
function lookedTo(looked: readonly Look[]): string {
  if (looked.length < MOST_LOOKED_AT) return '';
  const lines = [...Map.groupBy(looked, ({ name, place }) => `${place}${name}`).values()];
  // The lines are gone through side by side. A line with fewer tenants is over.
  const most = Math.max(...lines.map(({ length }) => length));
  const ends = lines.filter(({ length }) => length >= most - 1).map(lastOf);
  return ends.reduce((least, tenant) => (tenant < least ? tenant : least));
}
