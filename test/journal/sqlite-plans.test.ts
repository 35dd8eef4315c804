/** What a page of a list costs goes by the page, and not by all that is stored: the statements say so themselves. */
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { describe, expect, it, vi } from 'vitest';
import type { Journal, RunQuery } from '#journal';
import { createClaimed, identity, newRun, startedEntry } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';

/** How SQLite carries out what the journal has asked, a line for each look into a table. */
async function plansOf(ask: (journal: Journal) => Promise<unknown>): Promise<string[]> {
  const path = temporaryFile();
  const journal = openJournal(path);
  for (const run of ['run_0', 'run_1']) await createClaimed(journal, run);
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
  await ask(journal);
  const asked = prepare.mock.calls.map(([text]) => text).filter((text) => text.includes('ORDER BY'));
  prepare.mockRestore();
  await journal.close();
  expect(asked).not.toEqual([]);
  return withDatabase(path, (db) => {
    db.function('has_text', { varargs: true }, () => 0);
    const looks = asked.flatMap((text) => db.prepare(`EXPLAIN QUERY PLAN ${text}`).all());
    return looks.map((look) => String(look['detail']));
  });
}

describe('a page of runs is not sorted', () => {
  const scope = { tenant: 'acme', user: 'ana' };
  it.each([
    ['of all', {}],
    ['of a tenant', { tenant: 'acme' }],
    ['of a user', scope],
    ['of a session', { ...scope, session: 's1' }],
    ['of a label', { labels: { team: 'a' } }],
    ['of a label and a tenant', { tenant: 'acme', labels: { team: 'a' } }],
    ['of a schedule', { schedule: 'daily' }],
    ['of a task', { parent: 'run_1' }],
    ['of a task and a user', { ...scope, parent: 'run_1' }],
    ['of a label and a user', { ...scope, labels: { team: 'a', order: '17' } }],
    ['of a user by text', { ...scope, text: 'tea' }],
    ['of a tenant by status', { tenant: 'acme', status: ['paused'] }],
  ] as const)('%s', async (_, query) => {
    for (const after of [{}, { after: 'run_1' }]) {
      const plan = await plansOf((journal) => journal.list({ ...query, ...after }));
      expect(plan.join('\n')).not.toContain('TEMP B-TREE');
    }
  });

  it('and begins behind the last one of the page before', async () => {
    const ofLabel = await plansOf((journal) => journal.list({ labels: { team: 'a' }, after: 'run_1' }));
    expect(ofLabel.join('\n')).toContain('(name=? AND value=? AND run<?)');
    const ofTenant = await plansOf((journal) => journal.list({ tenant: 'acme', after: 'run_1' }));
    expect(ofTenant.join('\n')).toContain('runs_tenant (tenant=? AND rowid<?)');
  });
});

describe('what leads to the runs of a list', () => {
  it.each([
    ['the run, of its tasks in a tenant', { tenant: 'acme', parent: 'run_1' }, 'runs_parent (parent=?'],
    [
      'the user, where nothing has the text',
      { tenant: 'acme', user: 'ana', text: 'tea' },
      'runs_user (tenant=? AND user=? AND rowid>?',
    ],
    [
      'the tenant, where nothing has the agent',
      { tenant: 'acme', agent: 'clerk' },
      'runs_tenant (tenant=? AND rowid>?',
    ],
    [
      'the label, where nothing has the tenant',
      { tenant: 'acme', labels: { team: 'a' } },
      '(name=? AND value=? AND run>?',
    ],
  ] as const)('is %s', async (_, query, look) => {
    expect((await plansOf((journal) => journal.list(query))).join('\n')).toContain(look);
  });

  it('is, of several labels, the one that the fewest runs have', async () => {
    const journal = openJournal(temporaryFile());
    for (const order of ['1', '2', '3'])
      await journal.create(
        newRun(order, { entries: [startedEntry(identity(order), { labels: { team: 'a', order } })] }),
      );
    const all = vi.spyOn(StatementSync.prototype, 'all');
    const found = await journal.list({ labels: { team: 'a', order: '2' } });
    const asked = all.mock.calls.map(([name]) => name);
    all.mockRestore();
    expect(found.map(({ identity: { run } }) => run)).toEqual(['2']);
    expect(asked).toEqual(['order']);
  });
});

describe('a list whose filters leave out most of a long file', () => {
  it('has all that fit, newest first, in whichever part of the file', async () => {
    const journal = openJournal(temporaryFile());
    const names = Array.from({ length: 4_300 }, (_, number) => `run_${number}`);
    const claimed = new Set(['run_1', 'run_203', 'run_204', 'run_4298']);
    const claim = { owner: 'ana', leaseMs: 1_000 };
    await Promise.all(names.map((run) => journal.create(newRun(run, claimed.has(run) ? { claim } : {}))));
    const running = { tenant: identity('run_1').tenant, status: ['running'] } as const;
    const runsOf = async (query: RunQuery): Promise<string[]> =>
      (await journal.list(query)).map(({ identity: { run } }) => run);
    expect(await runsOf(running)).toEqual(['run_4298', 'run_204', 'run_203', 'run_1']);
    expect(await runsOf({ ...running, limit: 2 })).toEqual(['run_4298', 'run_204']);
    expect(await runsOf({ ...running, limit: 2, after: 'run_204' })).toEqual(['run_203', 'run_1']);
    expect(await runsOf({ ...running, after: 'run_1' })).toEqual([]);
    expect(await runsOf({ agent: 'nobody' })).toEqual([]);
  });
});

describe('what waits', () => {
  it.each([
    ['in a tenant', { tenant: 'acme' }, 'open_waits_tenant (tenant=? AND rowid>?)'],
    ['for a user', { tenant: 'acme', user: 'ana' }, 'open_waits_user (tenant=? AND user=? AND rowid>?)'],
  ] as const)('%s is found without a look at what waits elsewhere', async (_, query, look) => {
    const plan = (await plansOf((journal) => journal.waits.list(query))).join('\n');
    expect(plan).toContain(look);
    expect(plan).not.toContain('TEMP B-TREE');
  });
});

describe('the sessions of a tenant', () => {
  it('are found one by one, each from the one before it', async () => {
    const plan = await plansOf((journal) => journal.sessions.list({ tenant: 'acme' }));
    expect(plan.join('\n')).toContain('(tenant=? AND user=? AND session>?)');
  });
});

describe('what is remembered', () => {
  const namespace = ['acme', 'ana'];
  it.each([
    ['listed', (journal: Journal) => journal.store.list({ namespace, limit: 10 })],
    ['listed by its fields', (journal: Journal) => journal.store.list({ namespace, filter: { team: 'a' }, limit: 10 })],
    ['searched by words', (journal: Journal) => journal.store.search({ namespace, limit: 10 }, { words: ['tea'] })],
  ] as const)('of a namespace is %s in its range, from behind the page before', async (_, ask) => {
    const plan = (await plansOf(ask)).join('\n');
    expect(plan).toContain('((namespace,key)>(?,?) AND namespace<?)');
    expect(plan).not.toContain('TEMP B-TREE');
  });

  it('is searched by vectors in its range', async () => {
    const vector = new Float32Array([1]);
    const plan = await plansOf((journal) => journal.store.search({ namespace, limit: 10 }, { index: 'i', vector }));
    expect(plan.join('\n')).toContain('(namespace>? AND namespace<?)');
    const unindexed = await plansOf((journal) => journal.store.unindexed(namespace, 'i', 10));
    expect(unindexed.join('\n')).toContain('(namespace>? AND namespace<?)');
  });
});
