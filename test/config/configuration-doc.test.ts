import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, local } from '#pilotage';
import { loadConfig, readyConfig } from '#pilotage/config';
import { openaiServer, scriptedModel } from '#testing';
import { refusalOf } from '../kit/config.ts';
import { onSources } from '../kit/project.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8');
const files = new Map(
  [...page.matchAll(/<!-- file: (\S+) -->\n```ts\n([\s\S]*?)```/g)].map(([, name, code]) => [name, code]),
);

let folder: string;
beforeEach(() => {
  // Inside the project, so that its dependencies are found.
  folder = mkdtempSync(join(ROOT, '.pilotage-config-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string): string {
  const code = files.get(name);
  if (code === undefined) throw new Error(`The page has no file ${name}.`);
  const path = join(folder, name);
  writeFileSync(
    path,
    onSources(code, (source) => `../${source}`),
  );
  return path;
}

async function print(name: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const options = { cwd: folder, env: { ...process.env, ...env } };
  return (await promisify(execFile)(process.execPath, [write(name)], options)).stdout.trim();
}

/** The keys that a refusal of an unknown one lists. */
async function keysOf(config: object): Promise<readonly string[]> {
  const { message } = await refusalOf(config);
  const [, list] = /The keys here are (.*)\.$/.exec(message) ?? [];
  if (list === undefined) throw new Error(message);
  return list.split(', ');
}

describe('docs/configuration.md', () => {
  it('RG-08 has an example that runs, against a model server', async () => {
    const server = await openaiServer([
      { calls: [{ id: 'c1', tool: 'weather', args: { city: 'Oslo' } }] },
      { text: 'Yes, take one.' },
    ]);
    try {
      write('pilotage.config.ts');
      const stdout = await print('ask.ts', { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'key-1' });
      expect(stdout).toBe('Yes, take one.');
      const [first, second] = server.requests.map(({ body }) => JSON.stringify(body));
      expect(server.requests[0]?.headers.authorization).toBe('Bearer key-1');
      expect(first).toContain('Answer in one sentence.');
      expect(first).toMatch(/planning_constraints[\s\S]*weather/);
      expect(second).toContain('celsius');
    } finally {
      await server.close();
    }
  });

  it('RG-20 has an example with the deterministic planner that runs', async () => {
    const { runtime: options } = await readyConfig(await loadConfig(write('steps.config.ts')));
    const runtime = createRuntime({ ...options, journal: memoryJournal() });
    try {
      const run = await runtime.start('q', { identity: local('ana') });
      expect(await run.result()).toMatchObject({ status: 'finished', payload: 1 });
    } finally {
      await runtime.close();
    }
  });

  it('has an example with a plan that runs', async () => {
    const { runtime: options } = await readyConfig(await loadConfig(write('graph.config.ts')));
    const runtime = createRuntime({ ...options, journal: memoryJournal() });
    try {
      const run = await runtime.start('q', { identity: local('ana') });
      expect(await run.result()).toMatchObject({ status: 'finished', payload: [12, 6] });
    } finally {
      await runtime.close();
    }
  });

  it('RG-19 has an example with a planner of its own that runs', async () => {
    expect(await print('own.ts')).toBe('greeter');
  });

  it('runs every file that it shows', () => {
    expect([...files.keys()]).toEqual(['pilotage.config.ts', 'ask.ts', 'steps.config.ts', 'graph.config.ts', 'own.ts']);
    expect(page.match(/```ts\n/g)).toHaveLength(files.size);
  });

  it('RG-04, RG-17, RG-18 quotes what is said of a configuration that is refused', async () => {
    const model = scriptedModel([]);
    const refused: Readonly<Record<string, object>> = {
      '{ planner: { model, max_step: 12 } }': { planner: { model, max_step: 12 } },
      '{ planner: { model, retries: -1 } }': { planner: { model, retries: -1 } },
      "{ planner: { driver: 'greeter' } }": { planner: { driver: 'greeter' } },
    };
    const quoted = [...page.matchAll(/<!-- refused: (.*) -->\n```text\n([\s\S]*?)\n```/g)];
    expect(quoted.map(([, config]) => config)).toEqual(Object.keys(refused));
    for (const [, config = '', text] of quoted) expect((await refusalOf(refused[config])).message).toBe(text);
  });

  it('RG-18 says something of every key, and of none that is not there', async () => {
    const named = (title: string): string[] => {
      const section = page.split(/^##+ /m).find((text) => text.startsWith(`${title}\n`)) ?? '';
      const rows = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, keys = '']) => keys);
      return rows.flatMap((keys) => [...keys.matchAll(/`(\w+)`/g)].map(([, key = '']) => key)).sort();
    };

    const unknown = { qqq: 1 };
    expect(named('Keys')).toEqual([...(await keysOf(unknown))].sort());
    const shared = ['driver', 'maxSteps'];
    for (const driver of ['react', 'deterministic', 'pipeline', 'graph', 'finish']) {
      const keys = await keysOf({ planner: { driver, ...unknown } });
      expect(named(driver)).toEqual(keys.filter((key) => !shared.includes(key)).sort());
      expect(keys).toEqual(expect.arrayContaining(shared));
    }
    const inner = {
      limits: await keysOf({ limits: unknown }),
      memory: await keysOf({ memory: unknown }),
      progress: await keysOf({ progress: unknown }),
      planningHints: await keysOf({ planningHints: unknown }),
    };
    for (const [key, keys] of Object.entries(inner)) {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${key}\` |`)) ?? '';
      for (const each of keys) expect(row).toContain(`\`${each}\``);
    }
  });
});
