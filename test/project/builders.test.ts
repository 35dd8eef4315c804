/** Whatever a builder of the package is given: what is wrong is told in our own words, and never by a TypeError from inside. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';

const ROOT = new URL('../../', import.meta.url);
const { exports: doors } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
  exports: Record<string, string | { default: string }>;
};

/** They make nothing: they look at what a run, a model or a journal gave, whose types hold. */
const READERS: ReadonlySet<string> = new Set([
  'answerEnvelope',
  'answerText',
  'branchesOfPlan',
  'checkPlan',
  'coerceToSchema',
  'compareRuns',
  'estimateTokens',
  'findPlan',
  'finishOfPlan',
  'foldEntries',
  'lastPlan',
  'lastResult',
  'lastStep',
  'literal',
  'observe',
  'observeBranches',
  'parseToolArgs',
  'parseToolCalls',
  'planDecision',
  'planMetrics',
  'planNodes',
  'planOf',
  'plannerState',
  'policyFaults',
  'rankModels',
  'readTrajectory',
  'routePolicyOf',
  'select',
  'toYields',
  'traceOfStep',
  'traceText',
  'trajectoryOf',
  // Carries out, and makes nothing.
  'joinK',
  'mapConcurrent',
]);
const ODD: readonly unknown[] = [
  undefined,
  null,
  7,
  'x',
  [],
  [null],
  {},
  { a: null },
  () => 1,
  true,
  Symbol('s'),
  1n,
  new Date(),
];
const CALLS: readonly (readonly unknown[])[] = [
  [],
  ...ODD.map((odd) => [odd]),
  ...ODD.map((odd) => ['x', odd]),
  ...ODD.map((odd) => [odd, {}]),
];

type Builder = (...args: readonly unknown[]) => unknown;

async function builders(): Promise<[string, Builder][]> {
  const found = new Map<string, Builder>();
  for (const [door, target] of Object.entries(doors)) {
    // What tests are written with is used by those who read the stack.
    if (typeof target === 'string' || door === './testing') continue;
    const path = target.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts');
    const room: Record<string, unknown> = await import(new URL(path, ROOT).href);
    for (const [name, value] of Object.entries(room)) {
      if (typeof value !== 'function' || READERS.has(name) || /^class\b/.test(String(value))) continue;
      found.set(name, value as Builder);
    }
  }
  return [...found];
}

function isRaw(thrown: unknown): boolean {
  return !(thrown instanceof Error) || !('code' in thrown) || thrown instanceof TypeError;
}

describe('builders', async () => {
  it.each(await builders())('%s refuses what it cannot use with an error of ours', async (_, build) => {
    for (const args of CALLS) {
      const given = args.map((arg) => (typeof arg === 'object' ? JSON.stringify(arg) : String(arg))).join(', ');
      try {
        await build(...args);
      } catch (thrown) {
        expect({ given, thrown, isRaw: isRaw(thrown) }).toMatchObject({ isRaw: false });
      }
    }
  });

  it('there are those that the documentation names', async () => {
    const names = (await builders()).map(([name]) => name);
    for (const name of [
      'createRuntime',
      'react',
      'graph',
      'htn',
      'rules',
      'deterministic',
      'pipeline',
      'flow',
      'node',
    ]) {
      expect(names).toContain(name);
    }
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['flow', { name: 'f', entry: {}, exit: {} }, 'The option inputSchema of flow is missing'],
    [
      'flow',
      { name: 'f', inputSchema: {}, entry: {}, exit: {}, edge: [] },
      'flow has no option "edge". Did you mean edges?',
    ],
    ['flow', { name: 'f', inputSchema: {}, entry: {}, exit: {}, edges: {} }, 'edges of flow is an object; give a list'],
    ['createRuntime', { planner: () => null, tools: 7 }, 'has the tools 7; give a list of tools'],
    ['createRuntime', { planner: () => null, random: 1 }, 'random of createRuntime is the number 1; give a function'],
    ['react', { model: 'm', systemPromt: 'x' }, 'react has no option "systemPromt". Did you mean systemPrompt?'],
    ['react', { model: 'm', compaction: null }, 'compaction of react is null; give an object, or leave it out'],
    ['htn', { domain: {} }, 'state of htn is missing; give a function'],
    ['htnDomain', {}, 'operators of htnDomain is missing; give an object'],
    ['predicateRouter', { branches: [null] }, 'The branch 0 of predicateRouter takes an object'],
    ['sqliteJournal', { path: 'x.db', readonly: true }, 'Did you mean readOnly?'],
  ])('%s names the option: %s', async (name, options, message) => {
    const build = new Map(await builders()).get(name);
    expect(() => build?.(options)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    expect(() => build?.(options)).toThrow(message);
  });

  it('an option that is an object of a class is taken, with whatever else that has', () => {
    class Options {
      readonly own = 1;
    }
    expect(memoryJournal(new Options() as never)).toBeDefined();
  });
});
