import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { EffectLine } from './agent.ts';
import { killAtRandom } from './killing.ts';
import { problemsOf, summaryOf, type Witness } from './verdict.ts';

const KILLS = 50;

const folder = mkdtempSync(join(tmpdir(), 'pilotage-sigkill-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const witnesses: Witness[] = [];

it('survives SIGKILL at random moments: no entry lost, nothing done twice, every run ends as it would have', async () => {
  const seed = Number(process.env['PILOTAGE_SEED'] ?? Math.floor(Math.random() * 1e6));
  console.log(`PILOTAGE_SEED=${seed}`);
  const killed = await killAtRandom({ folder, place: join(folder, 'pilotage.db'), seed, kills: KILLS });
  witnesses.push(...killed.witnesses);
  const problems = witnesses.flatMap(problemsOf);
  console.log(`${killed.kills} kills, ${summaryOf(witnesses)}, ${problems.length} violations`);
  expect(problems, `PILOTAGE_SEED=${seed}`).toEqual([]);
  expect(killed.kills).toBeGreaterThanOrEqual(KILLS);
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
