import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { openaiServer } from '#testing';
import { bear } from '../kit/lives.ts';
import { onSources } from '../kit/project.ts';
import { Chat } from '../kit/ui-chat.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function programUnder(heading: string): string {
  const section = readFileSync(join(root, 'README.md'), 'utf8').split(`\n## ${heading}\n`)[1];
  const code = /^\n```ts\n([\s\S]*?)```/.exec(section ?? '')?.[1];
  if (code === undefined) throw new Error(`README has no program under ${heading}.`);
  return code;
}

function firstAgent(): string {
  return programUnder('A first agent');
}

function write(folder: string, code = firstAgent()): void {
  writeFileSync(
    join(folder, 'agent.ts'),
    onSources(code, (source) => `../${source}`),
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

describe('the server of the README', () => {
  it('runs as it stands, and useChat talks to it', async () => {
    const folder = mkdtempSync(join(root, '.pilotage-readme-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const given = `
      import { createRuntime } from 'pilotage';
      import { memoryJournal } from 'pilotage/journal/memory';
      import { Effects, scenarioAgent } from '../examples/scenario-agent.ts';
      const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal: memoryJournal() });
      runtime.work();
    `;
    write(folder, `${given}${programUnder('On the web').replace('4400', '0')}console.log(url);`);
    const told = Promise.withResolvers<string>();
    const { child, end } = bear({ program: join(folder, 'agent.ts'), folder, args: [] }, told.resolve);
    end.catch(told.reject);
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await end;
    });
    const chat = new Chat(await told.promise);
    await chat.sendMessage({ text: 'say one two' });
    expect(chat.said).toEqual(['user: say one two', 'assistant: one two']);
  });
});
