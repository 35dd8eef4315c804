/** The examples of waits as processes that are killed and started again, and what must have come of them then. */
import { execFile } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { branchesOf, type Outcome } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import type { RunRecord } from '#pilotage/journal';
import { foldEntries, type RunState } from '#state';
import { endingProblems, foldProblems } from '#testing';
import { builtFile } from '../kit/built.ts';
import { projectDir } from '../kit/project.ts';

/** Those of a race in a flow, waits, schedules, approvals, undo, streams, and those that are compared with programs of others. */
export const examples: readonly string[] = globSync('{16-flow-race,4[6-9]-*,5?-*,6?-*}.ts', {
  cwd: join(projectDir, 'examples'),
}).sort();

/** What a process of `example-child.ts` is to do, as JSON. */
export interface Orders {
  /** Paths: the example is run on each of them, one after another. */
  readonly journals: readonly string[];
  /** The moment at which the process is killed, counted from 1. */
  readonly killAt?: number;
  /** A folder that gets a copy of the journal's folder at each moment. */
  readonly copies?: string;
}

/** What came of an example. */
export interface Played {
  /** Each run and what became of it. */
  readonly runs: readonly string[];
  readonly problems: readonly string[];
}

/** What a process leaves that dies: the files, and what was said until then. */
interface Left {
  readonly journal: string;
  readonly lines: readonly string[];
}

/** An example that came to its end, and what its process would have left at each moment before. */
export interface Whole extends Played {
  /** Each as SIGKILL would leave it: nothing is written while it is copied. */
  readonly moments: readonly Left[];
}

const JOURNAL = 'pilotage.db';
const KILLED = '§ killed';
const MAX_SAID_BYTES = 16 * 2 ** 20;

/** The example in a process that lives to its end. @param folder is empty, and gets the copies. */
export async function playWhole(example: string, folder: string): Promise<Whole> {
  const journal = join(folder, 'whole', JOURNAL);
  mkdirSync(dirname(journal));
  const { lines } = await life(example, { journals: [journal], copies: folder });
  const marks = lines.flatMap((line, index) => (line.startsWith('§ moment ') ? [index] : []));
  const moments = marks.map((mark, index) => ({
    journal: join(folder, String(index + 1), JOURNAL),
    lines: lines.slice(0, mark),
  }));
  return { moments, ...(await verdict(journal, lines)) };
}

/** The example goes on from each of them, in one process that has nothing to do with the one that made them. */
export async function goOnFrom(example: string, moments: readonly Left[]): Promise<Played[]> {
  const { lines } = await life(example, { journals: moments.map(({ journal }) => journal) });
  const said = endingWith(lines, (line) => line.startsWith('§ moments '));
  if (said.length !== moments.length) throw new Error(`${example} ended ${said.length} times: ${lines.join('\n')}`);
  return Promise.all(
    moments.map(({ journal, lines: before }, index) => verdict(journal, [...before, KILLED, ...(said[index] ?? [])])),
  );
}

/** The example in a process that is killed at the moment, in another one that is killed at half of it, and in a third. */
export async function playKilled(example: string, at: number): Promise<Played> {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-example-'));
  const journals = [join(folder, JOURNAL)];
  try {
    const lines: string[] = [];
    for (const killAt of [at, Math.ceil(at / 2), undefined]) {
      const { killed, lines: said } = await life(example, { journals, ...(killAt === undefined ? {} : { killAt }) });
      lines.push(...said);
      if (!killed) break;
      lines.push(KILLED);
    }
    return await verdict(join(folder, JOURNAL), lines);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function endingWith(lines: readonly string[], isLast: (line: string) => boolean): string[][] {
  const parts: string[][] = [];
  let part: string[] = [];
  for (const line of lines) {
    part.push(line);
    if (!isLast(line)) continue;
    parts.push(part);
    part = [];
  }
  return parts;
}

interface Life {
  readonly killed: boolean;
  readonly lines: readonly string[];
}

/** A process of the example, until its end or its death. @throws when it ends by itself with another code than 0. */
function life(example: string, orders: Orders): Promise<Life> {
  const path = join(projectDir, 'examples', example);
  const args = [builtFile('test/crash/example-child.ts'), path, JSON.stringify(orders)];
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, args, { maxBuffer: MAX_SAID_BYTES }, (error, stdout, stderr) => {
      const killed = child.signalCode === 'SIGKILL';
      if (error !== null && !killed) reject(new Error(`${example} failed: ${stdout}${stderr}`, { cause: error }));
      else resolve({ killed, lines: stdout.split('\n') });
    });
  });
}

/** What a tool tells of the world, and is recorded behind that, it does not do again: `book hotel`, then `§ call_ended`. */
const DEED = /^(book|cancel|measure|cut|glue|paint|to \w+:)|is (held|booked|cancelled)\b/;
const RECORDED: readonly string[] = ['§ call_ended', '§ call_kept'];

export function doneTwice(lines: readonly string[]): string[] {
  const recorded = new Set<string>();
  const problems: string[] = [];
  let open: string[] = [];
  for (const line of lines) {
    if (recorded.has(line)) problems.push(`It did again what was recorded: ${line}`);
    else if (DEED.test(line)) open.push(line);
    if (line === KILLED) open = [];
    if (!RECORDED.includes(line)) continue;
    for (const deed of open) recorded.add(deed);
    open = [];
  }
  return problems;
}

async function verdict(path: string, lines: readonly string[]): Promise<Played> {
  const journal = sqliteJournal({ path });
  const records = await journal.list({ limit: 200 });
  const problems = doneTwice(lines);
  const runs: string[] = [];
  for (const record of records) {
    if (isAnotherEachTime(record)) continue;
    const entries = await journal.read(record.identity.run);
    const state = foldEntries(entries);
    const found = [...foldProblems(entries), ...(state.ending === null ? [] : endingProblems(entries, record))];
    problems.push(...found.map((problem) => `${record.identity.run}: ${problem}`));
    runs.push(JSON.stringify(became(state)));
  }
  await journal.close();
  return { runs: runs.sort(), problems };
}

/** What a program that starts again starts anew: it triggers a schedule, or types once more what is debounced. */
function isAnotherEachTime({ schedule, query }: RunRecord): boolean {
  return schedule?.triggered === true || query === 'forecast';
}

/** What must be the same, however often the process was killed. Ids of calls, and how often a planner was woken, need not be. */
function became({ query, ending, steps, pauses }: RunState): unknown {
  const end = ending?.kind === 'failed' ? ending.error.code : ending && [ending.reason, ending.payload];
  const made = steps.flatMap(({ decision, calls, undoes }) =>
    branchesOf(decision).map(({ tool, args }, call) => ({ tool, args, outcome: endOf(calls[call]?.outcome), undoes })),
  );
  return { query, end, made, asks: pauses.map(({ reason, payload }) => [reason, payload]) };
}

function endOf(outcome: Outcome | undefined): unknown {
  return outcome !== undefined && 'error' in outcome ? [outcome.kind, outcome.error.code] : outcome;
}
