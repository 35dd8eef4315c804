/**
 * Shows that the simulation bites: makes one known fault after another in a copy of the sources, and plays seeds until a history
 * fails. The last line is JSON; a fault that nothing noticed, or whose place in the sources is gone, makes it fail.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { MUTANTS } from './mutants/all.ts';
import type { Mutant } from './mutants/mutant.ts';

const root = dirname(import.meta.dirname);

/** The last lines of what a simulation of the changed sources printed, if it failed. */
async function caught({ file, find, replace }: Mutant, seeds: string): Promise<string | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'pilotage-mutant-'));
  try {
    for (const part of ['src', 'scripts', 'test/simulation', 'package.json'])
      cpSync(join(root, part), join(dir, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
    const path = join(dir, 'src', file);
    const text = readFileSync(path, 'utf8');
    const [before, after, ...more] = text.split(find);
    if (before === undefined || after === undefined || more.length > 0) {
      throw new Error(`src/${file} does not have this text exactly once: ${find}`);
    }
    writeFileSync(path, before + replace + after);
    return await firstFailure(dir, seeds);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function firstFailure(dir: string, seeds: string): Promise<string | undefined> {
  const script = join('scripts', 'simulate.ts');
  const child = spawn(process.execPath, [script, '--seeds', seeds, '--threads', '1', '--stop'], { cwd: dir });
  const lines: string[] = [];
  child.stdout.on('data', (chunk: Buffer) => lines.push(...String(chunk).split('\n')));
  child.stderr.on('data', (chunk: Buffer) => lines.push(...String(chunk).split('\n')));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => {
      const last = lines.findLast((line) => line.startsWith('{"seeds"'));
      if (last === undefined) reject(new Error(`The simulation broke down:\n${lines.join('\n')}`));
      else resolve(last.endsWith('"violations":0}') ? undefined : (lines[0] ?? ''));
    });
  });
}

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '20000' }, only: { type: 'string', default: '' } },
});
const chosen = MUTANTS.filter(({ name }) => name.includes(values.only));
let count = 0;
const left = [...chosen];
async function goOn(): Promise<void> {
  for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
    const failure = await caught(mutant, values.seeds).catch((error: unknown) => {
      console.log(`${mutant.name}: ${String(error)}`);
      return undefined;
    });
    if (failure !== undefined) count += 1;
    console.log(
      `${failure === undefined ? 'NOT CAUGHT' : 'caught'}: ${mutant.name}${failure === undefined ? '' : `: ${failure}`}`,
    );
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, goOn));
console.log(JSON.stringify({ mutants: chosen.length, caught: count }));
process.exitCode = count === chosen.length ? 0 : 1;
