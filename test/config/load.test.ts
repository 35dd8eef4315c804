import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PilotageError } from '#pilotage';
import { loadConfig, readyConfig } from '#pilotage/config';
import { builtUrl } from '../kit/built.ts';

const FACE = builtUrl('src/index.ts');
const CONFIG_FACE = builtUrl('src/config/index.ts');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pilotage-load-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const refusal = (path: string): Promise<PilotageError> =>
  loadConfig(path).then(
    () => {
      throw new Error('The file was taken.');
    },
    (error) => error as PilotageError,
  );

describe('a configuration file', () => {
  it.each([
    'pilotage.config.ts',
    'pilotage.config.mts',
    'pilotage.config.js',
    'pilotage.config.mjs',
  ])('may be %s', async (name) => {
    const types = name.endsWith('ts') ? ' as const' : '';
    const text = `export default { planner: { driver: 'finish'${types}, payload: 'from ${name}' } };`;
    write('package.json', '{ "type": "module" }');
    const { runtime } = await readyConfig(await loadConfig(write(name, text)));
    expect(runtime.planner).toMatchObject({ name: 'finish' });
  });

  it('is found from the current folder', async () => {
    const path = write('pilotage.config.mjs', "export default { planner: { driver: 'finish' } };");
    expect(await loadConfig(relative(process.cwd(), path))).toEqual({ planner: { driver: 'finish' } });
  });

  it('has its journal beside it, unless the path is a whole one', async () => {
    const inner = join(folder, 'inner');
    mkdirSync(inner);
    const near = write('inner/near.config.mjs', "export default { journal: 'data/runs.db' };");
    const far = write(
      'inner/far.config.mjs',
      `export default { journal: ${JSON.stringify(join(folder, 'runs.db'))} };`,
    );
    expect(await loadConfig(near)).toEqual({ journal: join(inner, 'data/runs.db') });
    expect(await loadConfig(far)).toEqual({ journal: join(folder, 'runs.db') });
  });

  it.each([
    ['that does not exist', 'gone.config.ts', undefined, 'does not exist'],
    ['of another kind', 'pilotage.yaml', 'planner: react', 'must end in one of .ts, .mts, .js, .mjs'],
    ['that throws', 'throws.mjs', "throw new Error('no key');", 'could not be read: no key'],
    ['that is no program', 'broken.mjs', 'export default {', 'could not be read: '],
    [
      'without a default export',
      'other.mjs',
      'export const config = {};',
      'has no configuration as its default export',
    ],
    [
      'that exports a function',
      'function.mjs',
      'export default () => ({});',
      'has no configuration as its default export',
    ],
    ['that exports a list', 'list.mjs', 'export default [];', 'has no configuration as its default export'],
  ])('RG-17 is refused: one %s', async (_what, name, text, problem) => {
    const path = text === undefined ? join(folder, name) : write(name, text);
    const { code, message } = await refusal(path);
    expect(code).toBe('invalid_config');
    expect(message).toContain(`${path} ${problem}`);
  });

  it('RG-20 in TypeScript is read by Node itself: a run with the deterministic planner comes to its end', async () => {
    const config = write(
      'pilotage.config.ts',
      `import { tool } from '${FACE}';
import { defineConfig } from '${CONFIG_FACE}';
import type { RunView } from '${builtUrl('src/planners/index.ts')}';
const clock = tool({ name: 'clock', description: 'Tells the hour.', inputSchema: { type: 'object' }, effect: 'read', execute: () => 12 });
const isFirst = (run: RunView): boolean => run.trajectory.count === 0;
export default defineConfig({
  planner: {
    driver: 'deterministic',
    steps: [
      { do: 'call', tool: 'clock', args: {}, when: isFirst },
      { do: 'finish', reason: 'goal', payload: (run: RunView) => run.trajectory.step(0)?.calls[0]?.outcome.kind ?? null },
    ],
  },
  tools: [clock],
  journal: 'runs.db',
});
`,
    );
    const program = write(
      'main.ts',
      `import { createRuntime, local } from '${FACE}';
import { loadConfig, readyConfig } from '${CONFIG_FACE}';
const { runtime: options } = await readyConfig(await loadConfig(${JSON.stringify(config)}));
const runtime = createRuntime(options);
const run = await runtime.start('What time is it?', { identity: local('ana') });
const { status, payload } = await run.result();
console.log(JSON.stringify({ status, payload }));
await runtime.close();
`,
    );
    const { stdout } = await promisify(execFile)(process.execPath, [program], {
      cwd: fileURLToPath(new URL('.', FACE)),
    });
    expect(JSON.parse(stdout)).toEqual({ status: 'finished', payload: 'value' });
  });
});
