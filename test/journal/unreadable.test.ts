/** One run that cannot be read hides no other. */
import { describe, expect, it } from 'vitest';
import { createRuntime } from '#runtime';
import { createClaimed, expectCode, identity, newRun, step } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';

const DAMAGES = [
  ['no JSON', '{"v":1,', 'journal_corrupt'],
  ['no object', '17', 'journal_corrupt'],
  ['of a newer format', '{"v":99,"kind":"started"}', 'journal_newer'],
  ['of a kind of a newer version', '{"v":1,"kind":"later"}', 'journal_entry_unknown'],
  ['no beginning', '{"v":1,"kind":"failed","error":{}}', 'journal_corrupt'],
] as const;

describe('a run that cannot be read', () => {
  it.each(
    DAMAGES,
  )('with a first entry that is %s is listed with its problem, beside the others', async (_, body, code) => {
    const path = temporaryFile();
    const journal = openJournal(path);
    for (const run of ['r1', 'r2', 'r3']) await journal.create(newRun(run));
    withDatabase(path, (db) => {
      db.prepare("UPDATE entries SET body = ? WHERE run = (SELECT key FROM runs WHERE id = 'r2')").run(body);
    });
    const records = await journal.list({});
    expect(records.map(({ identity: { run }, problem }) => [run, problem?.code])).toEqual([
      ['r3', undefined],
      ['r2', code],
      ['r1', undefined],
    ]);
    expect(await journal.get('r2')).toMatchObject({ status: 'pending', query: '', agent: 'finish' });
    const runtime = createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), journal, onFault: () => {} });
    expect(await runtime.list()).toHaveLength(3);
    expect(await runtime.tasks.list(identity('r1'))).toMatchObject([
      { id: 'r3' },
      { id: 'r2', problem: { code } },
      { id: 'r1' },
    ]);
    await runtime.close();
  });

  it('with an ending that cannot be read is listed as a task all the same', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    await journal.create(newRun('r1'));
    const claim = await createClaimed(journal, 'r2');
    await journal.append(step(claim, 1, { status: 'finished' }));
    withDatabase(path, (db) => db.prepare("UPDATE entries SET body = '{' WHERE seq = 2").run());
    const runtime = createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), journal, onFault: () => {} });
    expect(await runtime.tasks.list(identity('r1'))).toMatchObject([
      { id: 'r2', status: 'complete', problem: { code: 'journal_corrupt' } },
      { id: 'r1' },
    ]);
    await runtime.close();
  });

  it('for a message that is no JSON says which', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    await journal.create(newRun('r1'));
    await journal.signal('r1', { id: 'm1', type: 'PAUSE' });
    withDatabase(path, (db) => db.prepare("UPDATE controls SET body = '{'").run());
    const error = await expectCode(journal.inbox('r1'), 'journal_corrupt');
    expect(error.message).toContain('m1');
  });

  it('since its last entries are lost takes no more, and says so', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    await journal.append(step(claim, 1));
    await journal.release(claim, { seenSignals: 0, status: 'waiting', wakeInMs: 0 });
    const again = await journal.claim({ run: 'r1', owner: 'w', leaseMs: 5_000 });
    withDatabase(path, (db) => db.prepare('DELETE FROM entries WHERE seq = 2').run());
    const append = { ...step(claim, 2), fence: again?.fence ?? 0 };
    const error = await expectCode(Promise.resolve(journal.append(append)), 'journal_corrupt');
    expect(error.message).toContain('r1');
  });
});
