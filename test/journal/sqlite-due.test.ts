/** What is due in a file: a claim looks into indexes, and reads neither a backlog nor what a tenant has that it leaves out. */
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, vi } from 'vitest';
import type { ClaimedRun, Journal } from '#journal';
import { createClaimed } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';

/** More than a claim looks through. */
const BACKLOG = 6_000;
const request = { owner: 'worker', leaseMs: 60_000, agents: ['finish'], limit: 10 };
const others = { ...request, exceptTenants: ['full'] };

interface State {
  readonly status: 'pending' | 'waiting';
  /** Each run has the time of the one before it, and so much more. */
  readonly wakeAt: number;
  readonly step: number;
}

const READY: State = { status: 'pending', wakeAt: 0, step: 0 };
const WOKEN: State = { status: 'waiting', wakeAt: 0, step: 0 };
const TIMED: State = { status: 'pending', wakeAt: 1_000, step: 1 };
const PARKED: State = { status: 'waiting', wakeAt: 1_000, step: 1 };
const ASLEEP: State = { status: 'waiting', wakeAt: 9e14, step: 0 };

/** So many runs without entries that could be read. */
function put(path: string, count: number, tenant: (index: number) => string, { status, wakeAt, step }: State): void {
  withDatabase(path, (db) => {
    db.exec('BEGIN');
    const insert = db.prepare(`
      INSERT INTO runs (id, tenant, user, session, agent, priority, status, created_at, updated_at, wake_at)
      VALUES (?, ?, 'ana', 's1', 'finish', 0, ?, 1, 1, ?)`);
    for (let index = 0; index < count; index += 1)
      insert.run(`${tenant(index)}-${status}-${index}`, tenant(index), status, wakeAt + index * step);
    db.exec('COMMIT');
  });
}

async function fileWith(...fill: ((path: string) => void)[]): Promise<Journal> {
  const path = temporaryFile();
  const journal = openJournal(path);
  await journal.get('none');
  for (const one of fill) one(path);
  return journal;
}

const backlog = (state: State) => (path: string) => put(path, BACKLOG, () => 'full', state);
/** Later than all of the backlog. */
const lone =
  (tenant: string, { status, wakeAt, step }: State) =>
  (path: string) =>
    put(path, 1, () => tenant, { status, wakeAt: wakeAt + step * BACKLOG, step });
const tenantsOf = (claimed: readonly ClaimedRun[]): string[] => claimed.map(({ tenant }) => tenant);

/** How SQLite looks into the table of runs when this is asked. */
async function looksOf(ask: (journal: Journal) => Promise<unknown>): Promise<string[]> {
  const path = temporaryFile();
  const journal = openJournal(path);
  await createClaimed(journal, 'run_1');
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
  await ask(journal);
  const asked = prepare.mock.calls.map(([text]) => text).filter((text) => text.includes('json_each(:agents)'));
  prepare.mockRestore();
  await journal.close();
  return withDatabase(path, (db) => {
    const plans = asked.flatMap((text) => db.prepare(`EXPLAIN QUERY PLAN ${text}`).all());
    return plans.map(({ detail }) => String(detail)).filter((detail) => / runs\b/.test(detail));
  });
}

describe('what is due is looked for in an index', () => {
  const inLine = 'SEARCH runs USING INDEX runs_due (agent=? AND line=? AND ';
  const OF_ALL = [`${inLine}due_at=?)`, `${inLine}due_at>? AND due_at<?)`];
  const OF_TENANTS = [
    'SEARCH runs USING INDEX runs_due_of (agent=? AND line=? AND tenant>?)',
    'SEARCH runs USING INDEX runs_due_of (agent=? AND line=? AND tenant=? AND wake_at=?)',
    'SEARCH runs USING INDEX runs_due_of (agent=? AND line=? AND tenant=?)',
  ];

  it.each([
    ['by a claim', (journal: Journal) => journal.claimDue(request), OF_ALL],
    [
      'by a claim of any agent',
      (journal: Journal) => journal.claimDue({ owner: 'worker', leaseMs: 60_000, limit: 10 }),
      OF_ALL,
    ],
    ['by a claim that leaves tenants out', (journal: Journal) => journal.claimDue(others), OF_TENANTS],
    ['of what is parked', (journal: Journal) => journal.nextDue(['finish']), [`${inLine.slice(0, -5)})`]],
  ])('%s', async (_, ask, expected) => {
    const looks = await looksOf(ask);
    for (const look of expected) expect(looks).toContain(look);
    for (const look of looks) expect(look).toMatch(/USING (INDEX runs_due|INTEGER PRIMARY KEY)/);
  });
});

describe('behind a backlog of a tenant that is left out', () => {
  it.each([
    ['what is ready', READY],
    ['what was told something', WOKEN],
    ['runs whose time has come', TIMED],
    ['parked runs whose time has come', PARKED],
  ])('%s of another is claimed, and of the backlog nothing', async (_, state) => {
    const journal = await fileWith(backlog(state), lone('calm', state));
    expect(tenantsOf(await journal.claimDue(others))).toEqual(['calm']);
    expect(await journal.claimDue(others)).toEqual([]);
    expect(await journal.claimDue(request)).toHaveLength(request.limit);
  });

  it.each([
    ['told something', WOKEN],
    ['whose time has come', PARKED],
  ])('a parked run of another goes on that was %s', async (_, state) => {
    const journal = await fileWith(backlog(state), lone('calm', state));
    expect(tenantsOf(await journal.claimParked(others))).toEqual(['calm']);
    expect(await journal.claimParked(others)).toEqual([]);
    expect(await journal.claimParked(request)).toHaveLength(request.limit);
  });

  it('each of many others has its turn, also behind thousands that sleep', async () => {
    const many = (path: string): void => put(path, 40, (index) => `b${10 + index}`, { ...PARKED, wakeAt: 500_000 });
    const sleeping = (path: string): void => put(path, 2_500, (index) => `t${10_000 + index}`, ASLEEP);
    const journal = await fileWith(backlog(PARKED), many, sleeping, lone('z', PARKED));
    const served = new Set<string>();
    // The first time 32 of the others are compared, and a thousand tenants are looked at each time.
    for (let claim = 0; claim < 8; claim += 1)
      for (const tenant of tenantsOf(await journal.claimDue({ ...others, limit: 32 }))) served.add(tenant);
    expect(served.size).toBe(41);
    expect(served.has('z')).toBe(true);
  });
});
