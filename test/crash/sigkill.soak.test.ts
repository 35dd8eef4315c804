import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { foldEntries } from '#state';
import { seededRandom, treeOf } from '#testing';
import { type Life, live } from '../kit/lives.ts';
import { type EffectLine, readEffects, runId } from './agent.ts';
import { payloadOf, problemsOf, summaryOf, type Witness } from './verdict.ts';

const KILLS = 50;
const RUNS_AT_ONCE = 6;
const CHILD = join(import.meta.dirname, 'child.ts');

const folder = mkdtempSync(join(tmpdir(), 'pilotage-sigkill-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const witnesses: Witness[] = [];

/** Starts a child and kills it `delayMs` after its `lineCount`-th line. */
function liveFor(args: readonly string[], lineCount: number, delayMs: number): Promise<Life> {
  let count = 0;
  const isEnough = (): boolean => {
    count += 1;
    return count >= lineCount;
  };
  return live({ program: CHILD, folder, args, isEnough, delayMs });
}

it('survives SIGKILL at random moments: no entry lost, nothing done twice, every run ends as it would have', async () => {
  const seed = Number(process.env['PILOTAGE_SEED'] ?? Math.floor(Math.random() * 1e6));
  console.log(`PILOTAGE_SEED=${seed}`);
  const random = seededRandom(seed);
  const said: string[] = [];
  // One that ends by itself leaves its compiled modules to the others: they start three times as fast.
  await liveFor([`${seed}`, '0', '0'], Number.POSITIVE_INFINITY, 0);
  let kills = 0;
  let runs = 0;
  while (kills < KILLS) {
    for (;;) {
      const life = await liveFor(
        [`${seed}`, `${runs}`, `${RUNS_AT_ONCE}`],
        1 + Math.floor(random() * 40),
        Math.floor(random() * 6),
      );
      said.push(...life.lines);
      if (!life.killed) break;
      kills += 1;
    }
    runs += RUNS_AT_ONCE;
  }

  const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
  const effects = Map.groupBy(readEffects(join(folder, 'effects.jsonl')), (line) => line.run);
  const acknowledged = Map.groupBy(
    said.filter((line) => line.startsWith('ack ')),
    (line) => line.split(' ')[1] ?? '',
  );
  for (let index = 0; index < runs; index += 1) {
    const ids = await treeOf(journal, runId(seed, index));
    const journals = await Promise.all(ids.map((id) => journal.read(id)));
    const tree = journals.map((entries) => foldEntries(entries));
    for (const [at, run] of ids.entries()) {
      const [entries = [], state] = [journals[at], tree[at]];
      if (state === undefined) throw new Error(`The run ${run} is not there.`);
      const told = await payloadOf(state, journal);
      const record = await journal.get(run);
      const [said = [], done = []] = [acknowledged.get(run), effects.get(run)];
      witnesses.push({ entries, state, tree, told, record, said, effects: done });
    }
  }
  await journal.close();
  const problems = witnesses.flatMap(problemsOf);
  console.log(`${kills} kills, ${summaryOf(witnesses)}, ${problems.length} violations`);
  expect(problems, `PILOTAGE_SEED=${seed}`).toEqual([]);
  expect(kills).toBeGreaterThanOrEqual(50);
  expect(witnesses.some(({ state }) => state.task?.depth === 2)).toBe(true);
}, 300_000);

it('would have found a lost entry, a second payment, another key, another ending and a lost task', () => {
  const witness = witnesses.find(({ effects }) => effects.some(isBooking) && effects.some(isPayment));
  const payment = witness?.effects.find(isPayment);
  const booking = witness?.effects.find(isBooking);
  if (!witness || !payment || !booking) throw new Error('No run both paid and booked.');
  const { effects, entries, said } = witness;
  const faults: [Partial<Witness>, string][] = [
    [{ effects: [...effects, payment] }, 'was done 2 times'],
    [{ effects: [...effects, { ...booking, key: 'another' }] }, 'ran under two keys'],
    [{ effects: effects.map((line) => ({ ...line, key: payment.key })) }, 'has the key of'],
    [{ effects: effects.filter((line) => line.slot !== booking.slot) }, 'was never done'],
    [{ said: [...said, `ack ${payment.run} ${entries.length + 1} moved`] }, 'is lost'],
    [{ entries: entries.slice(0, -1) }, '0 endings'],
    [{ entries: entries.filter(({ seq }) => seq !== 3) }, 'Entry 3 has seq 4'],
    [{ told: 'something' }, 'told something else'],
  ];
  for (const [fault, problem] of faults) {
    expect(problemsOf({ ...witness, ...fault }).join('\n')).toContain(problem);
  }
  const owner = witnesses.find(({ state }) => state.tasks.length > 0);
  if (owner === undefined) throw new Error('No run had a task.');
  expect(problemsOf({ ...owner, tree: [owner.state] }).join('\n')).toContain('was spawned and is not there');
});

function isPayment({ tool }: EffectLine): boolean {
  return tool === 'pay';
}

/** One that is a step of its own, and so has a value. */
function isBooking({ tool, slot }: EffectLine): boolean {
  return tool === 'book' && slot.endsWith('.alone');
}
