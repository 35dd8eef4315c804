/** The program of the HTN benchmark. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { blocksProblem, choiceProblem, hanoiProblem } from '../../bench/htn/generate.ts';
import { digestOf, planner } from '../../bench/htn/planning.ts';
import type { Action, Problem } from '../../bench/htn/problem.ts';

function planOf(given: Problem): Action[] {
  const plan = planner(given)();
  if (plan === undefined) throw new Error(`${given.name}: no plan`);
  return plan;
}

describe('node bench/htn/run.ts', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  function folder(files: Readonly<Record<string, string>>): string {
    const path = mkdtempSync(join(tmpdir(), 'htn-bench-'));
    folders.push(path);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
    return path;
  }

  function run(...args: string[]): {
    readonly status: number | null;
    readonly stdout: string;
    readonly stderr: string;
  } {
    const program = new URL('../../bench/htn/run.ts', import.meta.url).pathname;
    return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  }

  it('prints an object a line', () => {
    const problems = [blocksProblem(5, 1), hanoiProblem(3)];
    const path = folder(Object.fromEntries(problems.map((given) => [`${given.name}.json`, JSON.stringify(given)])));
    const { status, stdout } = run('--problems', path, '--json');
    const lines = stdout
      .trim()
      .split('\n')
      .map((line): Record<string, unknown> => JSON.parse(line));
    expect(status).toBe(0);
    expect(lines).toEqual(
      problems.map((given) => {
        const plan = planOf(given);
        const [planLength, planSha256_16] = [plan.length, digestOf(plan)];
        return { name: given.name, planLength, planSha256_16, cpuMs: expect.any(Number), valid: true };
      }),
    );
  });

  it('compares with a reference and shows the floor', () => {
    const given = hanoiProblem(3);
    const results = [{ name: given.name, planSha256_16: digestOf(planOf(given)) }];
    const path = folder({ 'h.json': JSON.stringify(given) });
    const reference = join(folder({ reference: JSON.stringify({ results }) }), 'reference');
    const { status, stdout } = run('--problems', path, '--reference', reference);
    expect(status).toBe(0);
    expect(stdout).toMatch(/hanoi-3 +7 +yes +[\d.e-]+ +[\d.e-]+ +[\d.]+ +same/);
  });

  it('says in one line what cannot be used', () => {
    const given = hanoiProblem(1);
    const cases: readonly (readonly [args: string[], message: string])[] = [
      [[], 'expected --problems DIR'],
      [['--problems', join(tmpdir(), 'no-such-folder-of-problems')], 'the folder cannot be read'],
      [['--problems', folder({})], 'no problem files (*.json) there'],
      [['--problems', folder({ 'a.json': '{' })], 'a.json: cannot be read as JSON'],
      [['--problems', folder({ 'a.json': '{"domain":"hanoi_htn","state":[]}' })], 'a.json: expected "state"'],
      [['--problems', folder({ 'a.json': JSON.stringify({ ...given, domain: 'chess' }) })], 'unknown domain "chess"'],
    ];
    for (const [args, message] of cases) {
      const { status, stdout, stderr } = run(...args, '--json');
      expect({ status, stdout, lines: stderr.trim().split('\n').length }).toEqual({ status: 1, stdout: '', lines: 1 });
      expect(stderr).toContain(message);
    }
  });

  it('ends with 1 when a plan is missing', () => {
    const given = choiceProblem(2, 2);
    const state = { ...given.state, want: [['x1', 9]] };
    const { status, stdout } = run('--problems', folder({ 'c.json': JSON.stringify({ ...given, state }) }), '--json');
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ planLength: null, planSha256_16: null, valid: false });
  });
});
