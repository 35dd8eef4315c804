/** The examples of waits as processes that are killed and started again, and what must have come of them then. */
import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { branchesOf, type Outcome } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import type { RunRecord } from '#pilotage/journal';
import { foldEntries, type RunState } from '#state';
import { endingProblems, foldProblems } from '#testing';
import { builtFile } from '../kit/built.ts';
import { projectDir } from '../kit/project.ts';

/** Those of waits, schedules, approvals, undo, streams, and those that are compared with programs of others. */
export const examples: readonly string[] = globSync('{4[6-9],5?,6?}-*.ts', {
  cwd: join(projectDir, 'examples'),
}).sort();

export interface Played {
  /** At how many moments the process might have been killed, if it was not. */
  readonly moments: number;
  /** Each run and what became of it. */
  readonly runs: readonly string[];
  readonly problems: readonly string[];
}

interface Life {
  readonly killed: boolean;
  readonly lines: readonly string[];
}

/**
 * The example, and started again as often as it was killed.
 * @param killAt for each process but the last, the moment at which it is killed.
 * @throws when one ends by itself with another code than 0.
 */
export async function play(example: string, ...killAt: readonly number[]): Promise<Played> {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-example-'));
  const path = join(folder, 'pilotage.db');
  try {
    const lines: string[] = [];
    for (const at of [...killAt, undefined]) {
      const { killed, lines: said } = await life(example, path, at);
      lines.push(...said);
      if (!killed) break;
      lines.push(KILLED);
    }
    const moments = Number(lines.findLast((line) => line.startsWith('§ moments '))?.split(' ')[2]);
    return { moments, ...(await verdict(path, doneTwice(lines))) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The example in a process of its own, until its end or its death. */
function life(example: string, path: string, killAt?: number): Promise<Life> {
  const args = [builtFile('test/crash/example-child.ts'), join(projectDir, 'examples', example), path, `${killAt}`];
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, args, (error, stdout, stderr) => {
      const killed = child.signalCode === 'SIGKILL';
      if (error !== null && !killed) reject(new Error(`${example} failed: ${stdout}${stderr}`, { cause: error }));
      else resolve({ killed, lines: stdout.split('\n') });
    });
  });
}

/** What a tool tells of the world, and is recorded behind that, it does not do again: `book hotel`, then `§ call_ended`. */
const DEED = /^(book|cancel|measure|cut|glue|paint|to \w+:)|is (held|booked|cancelled)\b/;
const KILLED = '§ killed';
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

async function verdict(path: string, twice: readonly string[]): Promise<Omit<Played, 'moments'>> {
  const journal = sqliteJournal({ path });
  const records = await journal.list({ limit: 200 });
  const problems = [...twice];
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
