/** Journals that earlier versions wrote open, and every run in them goes on where its process left it. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { local, type Run, type Runtime } from '#pilotage';
import { type Journal, wholeJournal } from '#pilotage/journal';
import { foldEntries } from '#pilotage/state';
import { openWaitsOf } from '#state';
import { program, RUNS, type World } from './program.ts';

const FOLDER = new URL('.', import.meta.url);
const KEPT = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'));

interface Opened extends World {
  readonly path: string;
  readonly journal: Journal;
  readonly runtime: Runtime;
}

/** @param change SQL that is run on the file before it is opened as a journal. */
function open(kept: string, change = ''): Opened {
  const folder = mkdtempSync(join(tmpdir(), 'old-journal-'));
  const path = join(folder, 'pilotage.db');
  const db = new DatabaseSync(path);
  db.exec(`BEGIN; ${readFileSync(new URL(kept, FOLDER), 'utf8')} COMMIT`);
  db.exec(change);
  db.exec('PRAGMA journal_mode = WAL');
  db.close();
  const journal = sqliteJournal({ path });
  const world: World = { done: [], holds: new Set(), views: [] };
  const runtime = program(world, journal, { onFault: () => {} });
  onTestFinished(async () => {
    await runtime.close();
    await journal.close();
    rmSync(folder, { recursive: true });
  });
  return { ...world, path, journal, runtime };
}

/** Waits for the end. */
async function answerOf(run: Run): Promise<unknown> {
  const result = await run.result();
  return result.status === 'finished' ? result.payload : result;
}

async function tokenOf(run: Run, reason: string): Promise<string> {
  const result = await run.result();
  const pause = result.status === 'paused' ? result.pauses.find((one) => one.reason === reason) : undefined;
  if (pause === undefined) throw new Error(`${run.id} does not wait for ${reason}: ${JSON.stringify(result)}`);
  return pause.token;
}

it('keeps a file of each format from 6 on', () => {
  expect(KEPT).toEqual(['format-6.sql', 'format-7.sql', 'format-8.sql', 'format-9.sql']);
});

/** Runs that only files from format 7 on have. */
const LATER = [
  [RUNS.flowed, 'paused', 3],
  [`${RUNS.delegating}.0.0`, 'paused', 3],
  [RUNS.delegating, 'paused', 4],
];

describe.each(KEPT)('a journal of %s', (kept) => {
  it('shows all its runs as they were', async () => {
    const { runtime } = open(kept);
    const shown = (await runtime.list()).map(({ identity, status, head }) => [identity.run, status, head]);
    expect(shown).toEqual([
      [RUNS.pending, 'pending', 1],
      [RUNS.doubtful, 'running', 6],
      [RUNS.inDoubt, 'paused', 4],
      [`${RUNS.parent}.0.0`, 'paused', 3],
      [RUNS.parent, 'paused', 7],
      ...(kept === 'format-6.sql' ? [] : LATER),
      [RUNS.asking, 'paused', 4],
      [RUNS.gated, 'paused', 5],
      [RUNS.cancelled, 'cancelled', 5],
      [RUNS.failed, 'failed', 4],
      [RUNS.reacted, 'finished', 5],
      [RUNS.finished, 'finished', 12],
    ]);
  });

  it('has every entry, artifact and turn', async () => {
    const { journal, runtime } = open(kept);
    for (const { identity, head } of await runtime.list()) {
      const entries = await journal.read(identity.run);
      expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: head }, (_, index) => index + 1));
      expect(foldEntries(entries).head).toBe(head);
    }
    const { steps, totals } = await runtime.run(RUNS.finished).state();
    expect(totals).toMatchObject({ steps: 3, calls: 5, costMicroUsd: 250_000 });
    const large = steps[2]?.calls[0]?.outcome;
    const ref = large?.kind === 'value' ? large.artifact?.artifactRef : undefined;
    const stored = await journal.artifacts.get(local('ana', { session: 'talk' }), ref ?? '');
    expect(stored?.bytes.length).toBeGreaterThan(33_000);
    const next = await runtime.start('And now?', { identity: local('ana', { session: 'talk' }) });
    const [started] = await journal.read(next.id, 1, 1);
    expect(started?.kind === 'started' && started.continues?.runs.map(({ run }) => run)).toEqual([
      RUNS.finished,
      RUNS.reacted,
    ]);
  });

  it('has in the index what its entries say that runs wait for', async () => {
    const { journal, runtime } = open(kept);
    const whole = wholeJournal(journal);
    const said: unknown[] = [];
    for (const { identity } of await runtime.list()) {
      for (const row of openWaitsOf(foldEntries(await whole.read(identity.run)))) said.push([identity.run, row]);
    }
    const rows = await journal.waits.list({});
    const indexed = rows.map(({ number: _, agent: __, tenant, user, session, run, ...row }) => [run, row]);
    expect(said.length).toBeGreaterThan(3);
    expect(indexed).toHaveLength(said.length);
    expect(indexed).toEqual(expect.arrayContaining(said));
  });

  it('replays runs that ended', async () => {
    const { runtime } = open(kept);
    for (const run of [RUNS.finished, RUNS.reacted]) {
      expect(await runtime.run(run).replay()).not.toHaveProperty('divergence');
    }
  });

  it('goes on with runs that wait for somebody', async () => {
    const { runtime, done } = open(kept);
    const gated = runtime.run(RUNS.gated);
    await gated.approve(await tokenOf(gated, 'approval_required'));
    expect(await answerOf(gated)).toBe('opened');
    expect(done).toEqual(['guarded local/ana/work/old-gated/1.0']);
    const asking = runtime.run(RUNS.asking);
    await asking.resume({ payload: { which: 'this' } });
    expect(await answerOf(asking)).toBe('told');
    const doubted = runtime.run(RUNS.inDoubt);
    await doubted.settle(await tokenOf(doubted, 'in_doubt'), { happened: true, value: 'made' });
    expect(await answerOf(doubted)).toBe('settled');
  });

  it('goes on with a run whose process died inside of its calls', async () => {
    const { runtime, done } = open(kept);
    const run = runtime.run(RUNS.doubtful);
    await run.resume();
    const token = await tokenOf(run, 'in_doubt');
    expect(done).toEqual(['post local/ana/work/old-doubtful/1.2']);
    await run.settle(token, { happened: false });
    expect(await answerOf(run)).toBe('went on');
    expect(done.slice(1)).toEqual(['pay local/ana/work/old-doubtful/1.1']);
  });

  it('goes on with a run and its task', async () => {
    const { runtime, done } = open(kept);
    const parent = runtime.run(RUNS.parent);
    await parent.approve(await tokenOf(parent, 'approval_required'));
    expect(await answerOf(parent)).toBe('all in');
    expect(await answerOf(runtime.run(`${RUNS.parent}.0.0`))).toBe('helped');
    expect(done).toEqual(['guarded local/ana/work/old-parent.0.0/0.0']);
  });

  it('begins a run that nobody had claimed, which hears what it was told before', async () => {
    const { runtime, views } = open(kept);
    runtime.work();
    expect(await answerOf(runtime.run(RUNS.pending))).toBe('done late');
    const heard = views.filter(({ identity }) => identity.run === RUNS.pending).flatMap(({ controls }) => controls);
    expect(heard.map(({ id }) => id)).toEqual(['said-before']);
  });

  it('takes new runs, which remember the old ones, and is whole when it is opened again', async () => {
    const { path, runtime, journal, views } = open(kept);
    const run = await runtime.start('finish', { identity: local('ana', { session: 'talk' }) });
    expect(await answerOf(run)).toEqual({ ok: true });
    expect(views[0]?.history?.map(({ text }) => text)).toContain('Look at the model.');
    const written = await journal.read(run.id);
    await runtime.close();
    await journal.close();
    const again = sqliteJournal({ path });
    onTestFinished(() => again.close());
    expect(await again.read(run.id)).toEqual(written);
    expect(await again.read(RUNS.finished)).toHaveLength(12);
  });
});

it('goes on with agents under their names: a flow and an agent that carries out a call (format 7)', async () => {
  const { runtime, journal, done } = open('format-7.sql');
  expect(await journal.get(RUNS.flowed)).toMatchObject({ agent: 'shipping' });
  const flowed = runtime.run(RUNS.flowed);
  await flowed.approve(await tokenOf(flowed, 'approval_required'));
  expect(await answerOf(flowed)).toEqual({ sent: { parcel: 1 } });
  const delegating = runtime.run(RUNS.delegating);
  await delegating.approve(await tokenOf(delegating, 'approval_required'));
  expect(await answerOf(delegating)).toBe('delegated');
  expect(await runtime.run(`${RUNS.delegating}.0.0`).state()).toMatchObject({ agent: 'delegate' });
  expect(done).toEqual(['send local/ana/work/old-flowed/0.0', 'guarded local/ana/work/old-delegating.0.0/0.0']);
});

it('a request under a key that an earlier version has heard starts nothing, as its words for agents were others', async () => {
  const { path, runtime, journal } = open('format-7.sql');
  const identity = local('ana', { session: 'work' });
  const old = ['scripts', 'flow:shipping'];
  const spawn = (agent: string, by: Runtime = runtime): ReturnType<Runtime['tasks']['spawn']> =>
    by.tasks.spawn('parcel', { identity, idempotencyKey: agent, agent, context: { args: { to: 'ana' } } });
  const before = await Promise.all([spawn('scripts'), spawn('shipping')]);
  await Promise.all(before.map(({ run }) => run.result()));
  await runtime.close();
  await journal.close();
  const db = new DatabaseSync(path);
  for (const [index, { run }] of before.entries()) {
    const asked = `{"context":{"args":{"to":"ana"}},"inputs":[],"limits":{},"planner":"${old[index]}","priority":0,"query":"parcel","scopes":[]}`;
    const digest = createHash('sha256').update(asked).digest('base64url');
    db.prepare(
      `UPDATE entries SET body = json_remove(json_set(body, '$.v', 1, '$.planner', ?, '$.asked.digest', ?), '$.agent')
        WHERE seq = 1 AND run = (SELECT key FROM runs WHERE id = ?)`,
    ).run(old[index] as string, digest, run.id);
  }
  db.close();
  const again = sqliteJournal({ path });
  const later = program({ done: [], holds: new Set(), views: [] }, again, { onFault: () => {} });
  onTestFinished(async () => {
    await later.close();
    await again.close();
  });
  expect(await spawn('scripts', later)).toMatchObject({ reused: true, run: { id: before[0]?.run.id } });
  expect(await spawn('shipping', later)).toMatchObject({ reused: true, run: { id: before[1]?.run.id } });
  const other = { identity, idempotencyKey: 'shipping', agent: 'scripts', context: { args: { to: 'ana' } } };
  await expect(later.tasks.spawn('parcel', other)).rejects.toMatchObject({ code: 'idempotency_conflict' });
});

it('only the agents of flows have lost flow: before their names, in the rows as in the entries', async () => {
  const named = (name: string): string => `
    UPDATE runs SET planner = '${name}' WHERE id = '${RUNS.pending}';
    UPDATE entries SET body = json_set(body, '$.planner', '${name}')
      WHERE seq = 1 AND run = (SELECT key FROM runs WHERE id = '${RUNS.pending}');`;
  for (const [name, today] of [
    ['flow:x', 'x'],
    ['Flow:x', 'Flow:x'],
    ['my flow:x', 'my flow:x'],
  ] as const) {
    const { journal, runtime } = open('format-7.sql', named(name));
    expect([await journal.get(RUNS.pending), await runtime.run(RUNS.pending).state()]).toMatchObject([
      { agent: today },
      { agent: today },
    ]);
  }
});
