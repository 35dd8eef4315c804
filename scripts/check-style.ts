/**
 * The budgets for the size and shape of files: prints the numbers, fails when a source file is over 600 lines, when
 * `export *` stands outside a folder's own index file, when a comment leaves unfinished work, or when a merge left a file
 * behind. Reads the current folder.
 */
import { readFileSync } from 'node:fs';
import { parseSync } from 'rolldown/utils';
import { filesUnder, sourceFiles } from './source-files.ts';

const MAX_LINES = 600;
const MEDIAN_GOAL_LINES = 150;
const P90_GOAL_LINES = 400;
const UNFINISHED = /\b(TODO|FIXME)\b/;
/** What `patch` and `git mergetool` leave beside a file. */
const LEFTOVER = /\.(orig|rej)$/;

const problems: string[] = [];
const lineCounts: number[] = [];

for (const path of ['src', 'test', 'scripts', 'examples', 'bench'].flatMap(sourceFiles)) {
  const text = readFileSync(path, 'utf8');
  const { comments, program } = parseSync(path, text);
  const unfinished = comments.find(({ value }) => UNFINISHED.test(value));
  if (unfinished) {
    const line = text.slice(0, unfinished.start).split('\n').length;
    problems.push(`${path}:${line} leaves unfinished work: finish it or file an issue`);
  }
  if (!path.startsWith('src/')) continue;

  const lines = text.split('\n').length - 1;
  lineCounts.push(lines);
  if (lines > MAX_LINES) {
    problems.push(`${path} has ${lines} lines; at most ${MAX_LINES}: split it by what changes apart`);
  }
  if (!path.endsWith('/index.ts') && program.body.some(({ type }) => type === 'ExportAllDeclaration')) {
    problems.push(`${path} has an \`export *\` outside an index file: list the names`);
  }
}
for (const path of filesUnder('.').filter((found) => LEFTOVER.test(found))) {
  problems.push(`${path} was left over by a merge: delete it`);
}
if (lineCounts.length === 0) problems.push('No source file was read under src: run this in the project folder');

lineCounts.sort((a, b) => a - b);
const quantile = (q: number): number =>
  lineCounts[Math.min(lineCounts.length - 1, Math.floor(q * lineCounts.length))] ?? 0;
console.log(
  `${lineCounts.length} source files; lines: median ${quantile(0.5)} (goal ${MEDIAN_GOAL_LINES}), ` +
    `p90 ${quantile(0.9)} (goal ${P90_GOAL_LINES}), longest ${quantile(1)} (limit ${MAX_LINES})`,
);
for (const problem of problems) console.log(problem);
process.exitCode = problems.length === 0 ? 0 : 1;
