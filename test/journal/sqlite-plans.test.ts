/** What a page of a list costs goes by the page, and not by all that is stored: the statements say so themselves. */
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, vi } from 'vitest';
import type { Journal } from '#journal';
import { createClaimed } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';

/** How SQLite carries out what the journal has asked, a line for each look into a table. */
async function plansOf(ask: (journal: Journal) => Promise<unknown>): Promise<string[]> {
  const path = temporaryFile();
  const journal = openJournal(path);
  await createClaimed(journal, 'run_1');
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
