/**
 * How many lines of code programs have: `node bench/lines.ts <file>…`. Each is formatted as this project is, so that programs of others can be
 * compared with ours; blank lines, comments and imports do not count.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'rolldown/utils';

const PROJECT = join(import.meta.dirname, '..');
const BIOME = join(PROJECT, 'node_modules/.bin/biome');

function formatted(path: string): string {
  const input = readFileSync(path, 'utf8');
  // By this name it is formatted with the settings of the project.
  return execFileSync(BIOME, ['format', '--stdin-file-path=bench/program.ts'], {
    cwd: PROJECT,
    input,
    encoding: 'utf8',
  });
}

export function linesOfCode(path: string): number {
  const text = formatted(path);
  const { comments, program, errors } = parseSync('program.ts', text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path} cannot be read: ${error.message}`);
  const imports = program.body.filter(({ type }) => type === 'ImportDeclaration');
  const code = [...text];
  for (const { start, end } of [...comments, ...imports]) {
    for (let at = start; at < end; at += 1) if (code[at] !== '\n') code[at] = ' ';
  }
  return code
    .join('')
    .split('\n')
    .filter((line) => line.trim() !== '').length;
}

if (import.meta.main) {
  const counts = process.argv.slice(2).map((path) => ({ path, lines: linesOfCode(path) }));
  for (const { path, lines } of counts) console.log(String(lines).padStart(5), path);
  console.log(String(counts.reduce((sum, { lines }) => sum + lines, 0)).padStart(5), 'in all');
}
