import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { foldEntries } from '#state';
import { endingProblems, foldProblems, taskProblems, treeOf } from '#testing';
import { builtFile } from '../kit/built.ts';
import { type Life, live } from '../kit/lives.ts';
import { ITEMS, type NodeEffect, readNodeEffects, resultFor } from './flow-agent.ts';

const RUNS = 3;
/** A process dies behind so many lines of the kind, if it still comes by them. */
type Death = readonly [kind: string, count: number];
const DEATHS: readonly Death[] = [
  ['^ack \\S+ \\d+ spawned', 1],
  ['^effect pack', 1],
  ['^effect pay', 1],
  ['^effect stamp.item', 2],
  ['^ack \\S+ \\d+ call_ended run_\\d+\\.0\\.\\d+/', 2],
  ['^effect stamp.item', 4],
  ['^effect (even|odd)', 1],
];
const CHILD = builtFile('test/crash/flow-child.ts');

const folder = mkdtempSync(join(tmpdir(), 'pilotage-flow-sigkill-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const lives: Life[] = [];

function liveUntil(n: number, [kind, count]: Death): Promise<Life> {
  const args = [`${lives.length}`, `${n}`, kind, `${count}`];
  return live({ program: CHILD, folder, args, isEnough: () => false, delayMs: 0 });
}

/** A sentence for each node that did its thing after a process before it had said that its call has ended. */
function againProblems(said: readonly Life[], effects: readonly NodeEffect[]): string[] {
  const endedIn = new Map<string, number>();
  for (const [life, { lines }] of said.entries()) {
    for (const line of lines) {
      const [, call] = /^ack \S+ \d+ call_ended (\S+)$/.exec(line) ?? [];
      if (call !== undefined) endedIn.set(call, life);
    }
  }
  return effects.flatMap(({ life, node, key }) => {
    const [, call = ''] = /\/([^/]+\/\d+\.\d+)$/.exec(key) ?? [];
    const ended = endedIn.get(call);
    return ended !== undefined && ended < life
      ? [`${node} (${call}) ended in life ${ended} and ran again in ${life}.`]
      : [];
  });
}

function onceProblems(effects: readonly NodeEffect[]): string[] {
  const once = effects.filter(({ node }) => ['stamp.item', 'pay', 'even', 'odd'].includes(node));
  return [...Map.groupBy(once, ({ key }) => key)].flatMap(([key, done]) =>
    done.length === 1 ? [] : [`${done[0]?.node} (${key}) happened ${done.length} times.`],
  );
}

it('a flow that is killed in the middle of its map and of its subflow goes on in another process, and repeats nothing', async () => {
  let kills = 0;
  for (let n = 0; n < RUNS; n += 1) {
    for (const death of [...DEATHS, ['^$', 1] as const]) {
      const life = await liveUntil(n, death);
      lives.push(life);
      kills += life.killed ? 1 : 0;
      if (!life.killed) break;
    }
  }

  const effects = readNodeEffects(join(folder, 'effects.jsonl'));
  const problems = [...againProblems(lives, effects), ...onceProblems(effects)];
  const journal = sqliteJournal({ path: join(folder, 'pilotage.db') });
  const said = lives.flatMap(({ lines }) => lines).filter((line) => line.startsWith('ack '));
  for (let n = 0; n < RUNS; n += 1) {
    const ids = await treeOf(journal, `run_${n}`);
    const journals = await Promise.all(ids.map((id) => journal.read(id)));
    const tree = journals.map((entries) => foldEntries(entries));
    expect(tree[0]?.ending).toMatchObject({ kind: 'finished', reason: 'goal', payload: resultFor(n) });
    expect(ids).toHaveLength(3);
    for (const [at, run] of ids.entries()) {
      const [entries = [], state] = [journals[at], tree[at]];
      if (state === undefined) throw new Error(`The run ${run} is not there.`);
      const found = [...foldProblems(entries), ...endingProblems(entries, await journal.get(run))];
      for (const problem of [...found, ...taskProblems(entries, state, tree)]) problems.push(`${run}: ${problem}`);
      // A second step would mean that somebody planned the nodes anew. A map has one more, for its list.
      expect(state.steps.length).toBe(state.agent.startsWith('map:') ? 2 : 1);
      for (const line of said.filter((each) => each.split(' ')[1] === run)) {
        const [, , seq, kind] = line.split(' ');
        if (entries[Number(seq) - 1]?.kind !== kind) problems.push(`the entry of "${line}" is lost`);
      }
    }
  }
  await journal.close();
  const keyOf = ({ key }: NodeEffect): string => key;
  console.log(`${kills} kills, ${lives.length} processes, ${effects.length} effects, ${problems.length} violations`);
  expect(problems).toEqual([]);
  expect(new Set(effects.map(keyOf)).size).toBe(RUNS * (ITEMS + 5));
  expect(kills).toBeGreaterThanOrEqual(RUNS * 3);
  const last = lives.flatMap(({ killed, lines }) => (killed ? [lines.at(-1) ?? ''] : [])).join('\n');
  for (const middle of [/effect stamp\.item/, /effect pack/, /effect pay/]) expect(last).toMatch(middle);
}, 300_000);

it('would have found a node that ran again, and one that happened twice', () => {
  const effects = readNodeEffects(join(folder, 'effects.jsonl'));
  const first = effects.find(({ node }) => node === 'stamp.item');
  if (first === undefined) throw new Error('No item was stamped.');
  const again = [...effects, { ...first, life: lives.length }];
  expect(againProblems(lives, again).join()).toContain('ran again');
  expect(onceProblems(again).join()).toContain('happened 2 times');
});
