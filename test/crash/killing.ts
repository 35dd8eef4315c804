/** Children that are killed at random moments, one after another on one journal, and what is there when all their runs have ended. */
import { join } from 'node:path';
import { journalAt } from '#journal/place';
import { foldEntries } from '#state';
import { seededRandom, treeOf } from '#testing';
import { builtFile } from '../kit/built.ts';
import { type Life, live } from '../kit/lives.ts';
import { readEffects, runId } from './agent.ts';
import { payloadOf, type Witness } from './verdict.ts';

const RUNS_AT_ONCE = 6;
const CHILD = builtFile('test/crash/child.ts');

export interface Killing {
  readonly folder: string;
  /** Path or URL of the journal. */
  readonly place: string;
  readonly seed: number;
  /** How many at least. */
  readonly kills: number;
}

export interface Killed {
  readonly kills: number;
  readonly witnesses: readonly Witness[];
}

export async function killAtRandom({ folder, place, seed, kills: wanted }: Killing): Promise<Killed> {
  const random = seededRandom(seed);
  const said: string[] = [];
  const liveFor = (first: number, count: number, lineCount: number, delayMs: number): Promise<Life> => {
    let lines = 0;
    const isEnough = (): boolean => {
      lines += 1;
      return lines >= lineCount;
    };
    return live({ program: CHILD, folder, args: [`${seed}`, `${first}`, `${count}`, place], isEnough, delayMs });
  };
  // One that ends by itself leaves its compiled modules to the others: they start three times as fast.
  await liveFor(0, 0, Number.POSITIVE_INFINITY, 0);
  let kills = 0;
  let runs = 0;
  while (kills < wanted) {
    for (;;) {
      // After enough of them the last one lives.
      const lineCount = kills < wanted ? 1 + Math.floor(random() * 40) : Number.POSITIVE_INFINITY;
      const life = await liveFor(runs, RUNS_AT_ONCE, lineCount, Math.floor(random() * 6));
      said.push(...life.lines);
      if (!life.killed) break;
      kills += 1;
    }
    runs += RUNS_AT_ONCE;
  }
  const ids = Array.from({ length: runs }, (_, index) => runId(seed, index));
  return { kills, witnesses: await witnessesOf(ids, { folder, place, said }) };
}

async function witnessesOf(
  ids: readonly string[],
  { folder, place, said }: Pick<Killing, 'folder' | 'place'> & { readonly said: readonly string[] },
): Promise<Witness[]> {
  const journal = journalAt(place);
  const witnesses: Witness[] = [];
  const effects = Map.groupBy(readEffects(join(folder, 'effects.jsonl')), (line) => line.run);
  const acknowledged = Map.groupBy(
    said.filter((line) => line.startsWith('ack ')),
    (line) => line.split(' ')[1] ?? '',
  );
  for (const root of ids) {
    const runs = await treeOf(journal, root);
    const journals = await Promise.all(runs.map((id) => journal.read(id)));
    const tree = journals.map((entries) => foldEntries(entries));
    for (const [at, run] of runs.entries()) {
      const [entries = [], state] = [journals[at], tree[at]];
      if (state === undefined) throw new Error(`The run ${run} is not there.`);
      const told = await payloadOf(state, journal);
      const record = await journal.get(run);
      const [said = [], done = []] = [acknowledged.get(run), effects.get(run)];
      witnesses.push({ entries, state, tree, told, record, said, effects: done });
    }
  }
  await journal.close();
  return witnesses;
}
