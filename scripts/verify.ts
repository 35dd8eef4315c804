/**
 * Runs the stages that must all pass, each named and timed, and goes on after a failure so that one run shows every
 * problem. `node scripts/verify.ts check` runs only those that read the sources.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Stage {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

// A log that is kept is read as plain text. Biome has a flag of its own.
const isPlain = !process.stdout.isTTY;
if (isPlain) process.env['NO_COLOR'] = '1';

const SOURCE_STAGES: readonly Stage[] = [
  {
    name: 'format and lint',
    command: 'biome',
    args: ['ci', '--error-on-warnings', ...(isPlain ? ['--colors=off'] : []), '.'],
  },
  { name: 'types', command: 'tsc', args: ['-p', '.'] },
  { name: 'types of the page', command: 'tsc', args: ['-p', 'examples/chat'] },
  { name: 'import rules', command: 'node', args: ['scripts/check-imports.ts'] },
  { name: 'style budgets', command: 'node', args: ['scripts/check-style.ts'] },
];
const PACKAGE_STAGES: readonly Stage[] = [
  { name: 'build', command: 'tsdown', args: [] },
  { name: 'package', command: 'node', args: ['scripts/check-package.ts'] },
  { name: 'simulation', command: 'node', args: ['scripts/simulate.ts', '--seeds', '2000'] },
];

/** What Vitest's JSON report says, as far as it is read here. */
interface TestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
}

function runStage({ name, command, args }: Stage): boolean {
  console.log(`\n== ${name}`);
  const startedAt = performance.now();
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (error) console.log(String(error));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`== ${name}: ${status === 0 ? 'ok' : 'FAILED'} (${seconds} s)`);
  return status === 0;
}

/** A file that could not be loaded holds no test that failed, so it counts as one failure itself. */
function countTests(report: TestReport): { passed: number; failed: number } {
  const unloaded = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  return { passed: report.numPassedTests, failed: report.numFailedTests + unloaded.length };
}

interface Counted {
  readonly ok: boolean;
  readonly passed: number;
  readonly failed: number;
}

/** @param projects of those in vitest.config.ts. */
function runTests(name: string, ...projects: readonly string[]): Counted {
  const dir = mkdtempSync(join(tmpdir(), 'pilotage-verify-'));
  const reportPath = join(dir, 'tests.json');
  try {
    const ok = runStage({
      name,
      command: 'vitest',
      args: [
        'run',
        ...projects.map((project) => `--project=${project}`),
        '--reporter=default',
        '--reporter=json',
        `--outputFile.json=${reportPath}`,
      ],
    });
    const { passed, failed } = countTests(JSON.parse(readFileSync(reportPath, 'utf8')));
    return { ok: ok && failed === 0 && passed > 0, passed, failed };
  } catch (error) {
    console.log(`The test report cannot be read: ${error}`);
    return { ok: false, passed: 0, failed: 0 };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function reportFailed(stages: readonly Stage[]): boolean {
  const failed = stages.filter((stage) => !runStage(stage)).map((stage) => stage.name);
  if (failed.length > 0) console.log(`\nFailed: ${failed.join(', ')}`);
  return failed.length === 0;
}

if (process.argv[2] === 'check') {
  process.exitCode = reportFailed(SOURCE_STAGES) ? 0 : 1;
} else {
  const stagesOk = reportFailed([...SOURCE_STAGES, ...PACKAGE_STAGES]);
  const suites = [runTests('tests', 'fast'), runTests('soak tests', 'soak', 'disk')];
  process.exitCode = stagesOk && suites.every(({ ok }) => ok) ? 0 : 1;
  const sum = (count: 'passed' | 'failed'): number => suites.reduce((total, suite) => total + suite[count], 0);
  console.log(`\n${sum('passed')} passed, ${sum('failed')} failed`);
}
