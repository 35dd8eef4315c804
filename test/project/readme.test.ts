import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openaiServer } from '#testing';
import { onSources } from '../kit/project.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function firstAgent(): string {
  const code = /## A first agent\n\n```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1];
  if (code === undefined) throw new Error('README has no first agent.');
  return code;
}

function write(folder: string): void {
  writeFileSync(
    join(folder, 'agent.ts'),
    onSources(firstAgent(), (source) => `../${source}`),
  );
}

describe('the first agent of the README', () => {
  let folder: string;
  beforeEach(() => {
    // Inside the project, so that its dependencies are found.
    folder = mkdtempSync(join(root, '.pilotage-readme-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('takes 15 lines or fewer', () => {
    expect(firstAgent().trim().split('\n').length).toBeLessThanOrEqual(15);
  });

  it('without a model server it says what is missing in a line, and exits with an error', async () => {
    const gone = await openaiServer([]);
    await gone.close();
    write(folder);
    const env = { ...process.env, OPENAI_BASE_URL: gone.url };
    const failed = await promisify(execFile)(process.execPath, ['agent.ts'], { cwd: folder, env }).catch(
      (error: unknown) => error,
    );
    expect(failed).toMatchObject({
      code: 1,
      stdout: `Nothing listens at ${gone.url}/chat/completions (ECONNREFUSED): the server of the model qwen3 is not there. Start it, or set the right address.\n`,
    });
  });

  it('runs as it stands, against a model server', async () => {
    const server = await openaiServer([
      { calls: [{ id: 'c1', tool: 'weather', args: { city: 'Oslo' } }] },
      { text: 'Pack a warm coat.' },
    ]);
    try {
      write(folder);
      const env = { ...process.env, OPENAI_BASE_URL: server.url };
      const { stdout } = await promisify(execFile)(process.execPath, ['agent.ts'], { cwd: folder, env });
      expect(stdout).toContain('Pack a warm coat.');
      expect(stdout).toContain("status: 'finished'");
      expect(stdout).toContain("reason: 'goal'");
      expect(server.requests).toHaveLength(2);
      expect(JSON.stringify(server.requests[1])).toContain('celsius');
    } finally {
      await server.close();
    }
  });
});
