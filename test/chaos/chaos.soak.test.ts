/** Some seconds of the chaos, and whether what it is to notice is noticed. `npm run chaos` plays for longer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { type JsonObject, local } from '#pilotage';
import type { Entry } from '#pilotage/state';
import { note } from '../double-act/ledger.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { mayHaveRoom } from './disk.ts';
import type { Counts } from './tell.ts';
import { judge, KINDS, Testimony, type Verdict } from './verdict.ts';

const PROGRAM = join(import.meta.dirname, '../../scripts/chaos.ts');

async function chaos(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly counts: Counts; readonly text: string }> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const [code] = await once(child, 'close');
  return { code, counts: JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as Counts, text };
}

it('loses nothing, and nothing happens twice, while processes are killed, stopped, blocked, set and out of room', async () => {
  const { code, counts, text } = await chaos('--minutes', '0.2', '--seed', '7');
  expect(Object.fromEntries(KINDS.map((kind) => [kind, counts[kind]])), text).toEqual(
    Object.fromEntries(KINDS.map((kind) => [kind, 0])),
  );
  expect(code).toBe(0);
  expect(counts.runs).toBeGreaterThan(5);
  expect(counts.ended).toBeGreaterThanOrEqual(counts.runs);
  const { kills, stops, blocks, jumps } = counts;
  expect(kills + stops + blocks + jumps).toBeGreaterThan(5);
}, 240_000);

it('plays on a Postgres database, and leaves nothing in it of a round in which all was right', async () => {
  const url = await postgresUrl();
  // The database's clock says what is due, which the judge of fire times does not know: no clocks are set here.
  const deeds = ['--deeds', 'kills,stops,blocks'];
  const { code, counts, text } = await chaos('--minutes', '0.1', '--seed', '3', '--journal', url, ...deeds);
  expect(
    KINDS.map((kind) => counts[kind]),
    text,
  ).toEqual(KINDS.map(() => 0));
  expect([code, counts.runs > 2, counts.fullDisks]).toEqual([0, true, 0]);
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'chaos%'");
  await client.end();
  expect(rows).toHaveLength(code === 0 ? 0 : 1);
}, 240_000);

it.runIf(mayHaveRoom())(
  'has a disk that can be full',
  async () => {
    const { counts } = await chaos('--minutes', '0.1', '--seed', '5', '--deeds', 'fullDisks');
    expect(counts.fullDisks).toBeGreaterThan(0);
    expect(counts.faults['journal_full']).toBeGreaterThan(0);
    expect(KINDS.map((kind) => counts[kind])).toEqual(KINDS.map(() => 0));
  },
  240_000,
);

type Testify = (heard: Testimony, folder: string) => void;

describe('the verdict', () => {
  const RUN = 'run_1';
  const ended: readonly Entry[] = [
    {
      seq: 1,
      at: 1,
      kind: 'started',
      identity: local('ana', { run: RUN }),
      query: 'q',
      planner: 'parallel',
    } as unknown as Entry,
    { seq: 2, at: 2, kind: 'finished', reason: 'cancelled' } as unknown as Entry,
  ];

  interface Wrong {
    readonly kind: keyof Verdict;
    readonly what: string;
    readonly testify?: Testify;
    readonly entries?: readonly Entry[];
  }

  async function verdictOf(testify: Testify, entries = ended): Promise<Verdict> {
    const folder = mkdtempSync(join(tmpdir(), 'pilotage-chaos-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const journal = memoryJournal();
    const [first, ...rest] = entries;
    if (first !== undefined) {
      const claim = { owner: 'a', leaseMs: 1_000 };
      const claimed = await journal.create({
        identity: local('ana', { run: RUN }),
        priority: 0,
        entries: [first],
        claim,
      });
      if (rest.length > 0) {
        await journal.append({ run: RUN, fence: claimed?.fence ?? 0, expected: 1, entries: rest, status: 'finished' });
        await journal.release({ run: RUN, fence: claimed?.fence ?? 0 }, { wakeInMs: null, seenSignals: 0 });
      }
    }
    const heard = new Testimony();
    heard.starts.set(RUN, 'parallel');
    heard.acknowledged.add(RUN);
    testify(heard, folder);
    return (await judge(journal, folder, heard)).verdict;
  }
  const wrong = (verdict: Verdict): string[] => KINDS.filter((kind) => verdict[kind].length > 0);
  const line = (attempt: string, key: string, subject: string, args: JsonObject, tool: string) =>
    ({ what: 'done', tool, subject, args, run: RUN, key, pid: 1, attempt, at: 1, value: {} }) as const;

  it('finds nothing wrong with a run that ended', async () => {
    expect(wrong(await verdictOf(() => {}))).toEqual([]);
  });

  it.each<Wrong>([
    { kind: 'lost', what: 'a run that was started and is gone', entries: [] },
    {
      kind: 'lost',
      what: 'an entry that was acknowledged',
      testify: (heard) =>
        heard.hear({ said: 'appended', run: RUN, fence: 1, entries: [{ ...ended[1], seq: 3 } as Entry] }, 1),
    },
    {
      kind: 'lost',
      what: 'a control that was stored',
      testify: (heard) => heard.hear({ said: 'signalled', run: RUN, id: 'control_x' }, 1),
    },
    {
      kind: 'wrongFences',
      what: 'an entry behind the claim of somebody else',
      testify: (heard) => {
        heard.hear({ said: 'claimed', run: RUN, fence: 2, head: 1, at: 1 }, 2);
        heard.hear({ said: 'appended', run: RUN, fence: 1, entries: ended.slice(1) }, 1);
      },
    },
    {
      kind: 'wrongFences',
      what: 'an effect that was entered when the run had long been somebody else’s',
      testify: (heard) => {
        heard.hear({ said: 'claimed', run: RUN, fence: 1, head: 1, at: 1 }, 1);
        heard.hear({ said: 'claimed', run: RUN, fence: 2, head: 1, at: 2 }, 2);
        heard.entered.push({ run: RUN, key: 'k', at: 5_000, pid: 1 });
      },
    },
    { kind: 'stuck', what: 'a run that neither ended nor waits', entries: ended.slice(0, 1) },
  ])('$kind: $what', async ({ kind, testify = () => {}, entries }) => {
    expect(wrong(await verdictOf(testify, entries))).toEqual([kind]);
  });

  it('onceTwice, keyedTwice: what the ledger has twice, or under two keys', async () => {
    const twice = await verdictOf((_heard, folder) => {
      for (const attempt of ['a', 'b'])
        note(folder, line(attempt, `${RUN}/0.0`, 'fee', { subject: 'fee', amount: 5 }, 'pay'));
    });
    expect(wrong(twice)).toContain('onceTwice');
    const twoKeys = await verdictOf((_heard, folder) => {
      for (const key of ['1.0', '2.0']) note(folder, line(key, `${RUN}/${key}`, 'room', { subject: 'room' }, 'book'));
    });
    expect(wrong(twoKeys)).toEqual(['keyedTwice']);
  });
});
