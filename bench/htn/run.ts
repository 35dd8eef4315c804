/** `node bench/htn/run.ts --problems DIR [--json] [--reference FILE]`: plans every problem of a folder and times it. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { machine } from '../machine.ts';
import { table } from '../table.ts';
import { type HtnRow, measureProblem, ROUNDS } from './measure.ts';
import { planner } from './planning.ts';
import { readProblems } from './problem.ts';

const HELP = `Plans every problem file (*.json) of a folder with the domains of bench/htn/domains.

  --problems DIR    the folder
  --json            one object a line: name, planLength, planSha256_16, cpuMs, valid
  --reference FILE  says of each plan whether its digest is that of { "results": [{ "name", "planSha256_16" }] }

cpuMs is the best of ${ROUNDS} samples of CPU time (user and system, of the whole process), after a warm-up, for building a fresh
state and planning; the floor is measured in turns with it. valid is the word of a validator apart from the planner.
The exit code is 1 when a plan is missing or not valid, and for a folder, file or domain that cannot be used.`;

try {
  main();
} catch (error) {
  console.error(`bench/htn: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

function main(): void {
  const { values } = parseArgs({
    options: {
      problems: { type: 'string' },
      json: { type: 'boolean', default: false },
      reference: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  if (values.problems === undefined) throw new Error('expected --problems DIR; see --help');
  const digests = values.reference === undefined ? undefined : readReference(values.reference);
  const problems = readProblems(values.problems);
  // All domains are known before the first is measured.
  for (const problem of problems) planner(problem);
  const rows: HtnRow[] = [];
  for (const problem of problems) {
    const row = measureProblem(problem);
    rows.push(row);
    if (!row.measured.valid) process.exitCode = 1;
    if (values.json) console.log(JSON.stringify(lineOf(row, digests)));
  }
  if (!values.json) console.log(`${machine()}\n\n${tableOf(rows, digests)}`);
}

type Digests = ReadonlyMap<string, string>;

function lineOf({ measured }: HtnRow, digests: Digests | undefined): object {
  if (digests === undefined) return measured;
  return { ...measured, sameAsReference: isSame(measured, digests) };
}

/** Null where the reference has no such problem. */
function isSame({ name, planSha256_16 }: HtnRow['measured'], digests: Digests): boolean | null {
  const digest = digests.get(name);
  return digest === undefined ? null : digest === planSha256_16;
}

function tableOf(rows: readonly HtnRow[], digests: Digests | undefined): string {
  const head = ['problem', 'plan', 'valid', 'CPU ms', 'floor ms', 'ratio'];
  const body = rows.map(({ measured, fault, floorMs }) => {
    const cells = [
      measured.name,
      String(measured.planLength ?? '-'),
      fault ?? 'yes',
      String(measured.cpuMs),
      floorMs === undefined ? '' : String(floorMs),
      floorMs === undefined ? '' : (measured.cpuMs / floorMs).toFixed(2),
    ];
    if (digests === undefined) return cells;
    const same = isSame(measured, digests);
    return [...cells, same === null ? 'not there' : same ? 'same' : 'another plan'];
  });
  return table('lrlrrrl', [digests === undefined ? head : [...head, 'reference'], ...body]);
}

function readReference(file: string): Digests {
  try {
    const { results } = JSON.parse(readFileSync(file, 'utf8')) as {
      results: readonly { name: string; planSha256_16: string }[];
    };
    return new Map(results.map(({ name, planSha256_16 }) => [name, planSha256_16]));
  } catch (error) {
    throw new Error(
      `${file}: no results can be read there (${error instanceof Error ? error.message : String(error)})`,
    );
  }
}
