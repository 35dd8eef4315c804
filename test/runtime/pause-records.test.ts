/** Pauses as they are stored: what is refused, what is kept, and how they are found again. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, it } from 'vitest';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { call, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-pauses-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const echo = make('echo', (args) => args);
const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
const gatedStep = script(call('pay', { sum: 5 }));

describe('a pause', () => {
  it('SP-21 has a token of its own that says nothing: a thousand pauses, a thousand tokens', async () => {
    const made = world({ planner: script(pause) });
    const runs = await Promise.all(Array.from({ length: 1_000 }, () => start(made)));
    const tokens = (await Promise.all(runs.map(pausesOf))).map(([open]) => open?.token ?? '');
    expect(new Set(tokens).size).toBe(1_000);
    for (const token of tokens) expect(token).toMatch(/^pause_[0-9a-f]{32}$/);
  });

  it('SP-22 for a bad reason is an invalid decision, and nothing is paused', async () => {
    const made = world({ planner: script({ kind: 'request_pause', reason: 'tired' as never }) });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
    expect(await entriesOf(made.journal, run, 'paused')).toEqual([]);
  });

  it('SP-23 whose payload holds a function is refused with its path; no token is made', async () => {
    const payload = { form: { submit: () => 1 } } as never;
    const made = world({ planner: script({ kind: 'request_pause', reason: 'await_input', payload }) });
    const run = await start(made);
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_decision', message: expect.stringContaining('payload.form.submit') },
    });
    expect(await entriesOf(made.journal, run, 'paused')).toEqual([]);
  });

  it('SP-28 says when it was asked and when it was answered', async () => {
    const made = world({ planner: script(pause) });
    const asked = made.clock.now();
    const run = await start(made);
    expect(await pausesOf(run)).toMatchObject([{ requestedAt: asked }]);
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    made.clock.advance(90_000);
    await run.resume();
    await run.result();
    const events = await collect(run);
    expect(only(events, 'pause.requested')).toMatchObject([{ occurredAt: asked }]);
    expect(only(events, 'pause.resumed')).toMatchObject([{ occurredAt: asked + 90_000, verdict: 'resume' }]);
  });
});

describe('the stored run', () => {
  const stored = async (): Promise<{ path: string; id: string }> => {
    const path = join(folder, `${crypto.randomUUID()}.db`);
    const journal = sqliteJournal({ path });
    const runtime = createRuntime({ planner: { name: 'payer', next: gatedStep }, tools: [pay, echo], journal });
    const run = await runtime.start('q', { identity: local('ana') });
    await run.result();
    await runtime.close();
    await journal.close();
    return { path, id: run.id };
  };
  const tamper = (path: string, change: (body: string) => string): void => {
    const db = new DatabaseSync(path);
    const rows = db.prepare('SELECT rowid AS at, body FROM entries').all() as { at: number; body: string }[];
    for (const { at, body } of rows) {
      if (body.includes('"kind":"paused"'))
        db.prepare('UPDATE entries SET body = ? WHERE rowid = ?').run(change(body), at);
    }
    db.close();
  };
  const read = async (path: string, id: string): Promise<unknown> => {
    const journal = sqliteJournal({ path });
    try {
      return await journal.read(id);
    } finally {
      await journal.close();
    }
  };

  it('SP-31 has a format number in each entry, and reads back to the same', async () => {
    const { path, id } = await stored();
    const once = await read(path, id);
    expect(JSON.stringify(once)).toBe(JSON.stringify(await read(path, id)));
    let seen = '';
    tamper(path, (body) => {
      seen = body;
      return body;
    });
    expect(JSON.parse(seen)).toMatchObject({ v: 2, kind: 'paused', reason: 'approval_required' });
  });

  it.each([
    ['0', '"v":0', 'journal_newer'],
    ['6', '"v":6', 'journal_newer'],
    ['none', '"w":1', 'journal_newer'],
  ])('SP-31 of the format %s is refused', async (_, version, code) => {
    const { path, id } = await stored();
    tamper(path, (body) => body.replace('"v":2', version));
    await expect(read(path, id)).rejects.toMatchObject({ code });
  });

  it('SP-31 that is broken is refused, and nothing is guessed', async () => {
    const { path, id } = await stored();
    tamper(path, (body) => body.slice(0, -3));
    await expect(read(path, id)).rejects.toMatchObject({ code: 'journal_corrupt' });
  });

  it('SP-33 keeps its pause and the answer: nothing is deleted', async () => {
    const { path, id } = await stored();
    const journal = sqliteJournal({ path });
    const runtime = createRuntime({ planner: { name: 'payer', next: gatedStep }, tools: [pay, echo], journal });
    await runtime.run(id).approve();
    await runtime.run(id).result();
    expect((await journal.read(id)).map(({ kind }) => kind)).toEqual([
      'started',
      'moved',
      'paused',
      'control',
      'resumed',
      'call_began',
      'call_ended',
      'moved',
      'finished',
    ]);
    await runtime.close();
    await journal.close();
  });

  it('SP-34 is listed: fifty a page, at most 200, newest first, of one tenant, by status', async () => {
    const made = world({ planner: script(pause) });
    const { clock } = made;
    for (let index = 0; index < 60; index += 1) {
      clock.advance(1);
      const identity = { ...local('ana'), tenant: index % 2 === 0 ? 'even' : 'odd' };
      await (await start(made, { identity })).result();
    }
    const { runtime } = made;
    const page = await runtime.list({ status: ['paused'] });
    expect(page).toHaveLength(50);
    expect(page.map(({ createdAt }) => createdAt)).toEqual(
      page.map(({ createdAt }) => createdAt).toSorted((a, b) => b - a),
    );
    const rest = await runtime.list({ status: ['paused'], after: page.at(-1)?.identity.run ?? '' });
    expect(rest).toHaveLength(10);
    expect(await runtime.list({ tenant: 'odd', status: ['paused'], limit: 200 })).toHaveLength(30);
    expect(await runtime.list({ status: ['finished'] })).toEqual([]);
    for (const limit of [201, 0, -1]) {
      await expect(runtime.list({ limit })).rejects.toMatchObject({ code: 'invalid_config' });
    }
  });
});
