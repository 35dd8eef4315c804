/** MCP servers that are killed in the middle of a call: the client has the right answer once, and nothing is done twice. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject } from '#core';
import { Effects } from '../../examples/scenario-agent.ts';
import { builtFile } from '../kit/built.ts';
import { type Born, bear } from '../kit/lives.ts';
import { type ClientName, type McpClient, mcpClient, modern, type ToolAnswer } from '../kit/mcp.ts';
import { gate, until } from '../kit/waiting.ts';

const PROGRAM = builtFile('test/server/mcp-child.ts');

/** A server on a folder, at one port, in one process after another. */
class Lives {
  readonly folder = mkdtempSync(join(tmpdir(), 'pilotage-mcp-'));
  readonly effects = new Effects(join(this.folder, 'effects'));
  #born: Born | undefined;
  #port = 0;
  #dead = new AbortController();

  constructor() {
    onTestFinished(async () => {
      await this.kill();
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${this.#port}/mcp`);
  }

  async start(): Promise<void> {
    const listening = gate<number>();
    const args = [String(this.#port)];
    this.#born = bear({ program: PROGRAM, folder: this.folder, args }, (line) => listening.open(Number(line)));
    this.#port = await listening.opened;
  }

  /** Aborted when the process that runs now is dead: the client of version 2.4 finds that out by its time limit, after a minute. */
  get isDead(): AbortSignal {
    return this.#dead.signal;
  }

  async kill(): Promise<void> {
    this.#born?.child.kill('SIGKILL');
    await this.#born?.end;
    this.#born = undefined;
    this.#dead.abort();
    this.#dead = new AbortController();
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }
}

/** Those of the older protocol go on with their call by themselves; in the newer one a call that was lost is sent again, under its key. */
async function sent(
  client: McpClient,
  name: ClientName,
  lives: Lives,
  input: string,
  onProgress = () => {},
): Promise<ToolAnswer> {
  if (name !== 'client 2.4, auto') return client.call(input, { onProgress });
  for (;;) {
    const { isDead } = lives;
    try {
      return await client.call(input, {
        meta: { 'pilotage/idempotencyKey': input },
        signal: isDead,
        onProgress,
      });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

const NAMES: readonly ClientName[] = ['client 2.4, 2025-11-25', 'client 2.4, auto', 'sdk 1.32'];

describe.each(NAMES)('MCP, server restart in a call: %s, whose server is killed and started again', (name) => {
  it('while text streams', async () => {
    const lives = new Lives();
    await lives.start();
    const client = await mcpClient(name, lives.url);
    const begun = gate();
    const called = sent(client, name, lives, 'slow 40', () => begun.open());
    await begun.opened;
    await lives.restart();
    const words = Array.from({ length: 40 }, (_, index) => `w${index}`).join(' ');
    expect(await called).toMatchObject({ content: [{ text: words }] });
  });

  it('while a tool runs', async () => {
    const lives = new Lives();
    await lives.start();
    const client = await mcpClient(name, lives.url, { onAsked: () => ({ action: 'accept', content: {} }) });
    const called = sent(client, name, lives, 'refund A-17');
    await until(() => lives.effects.count('refund') === 1);
    await lives.restart();
    expect(await called).toMatchObject({ content: [{ text: 'A-17 is refunded.' }] });
    expect(lives.effects.count('refund')).toBe(1);
  });

  it('while an approval waits, which another process takes', async () => {
    const lives = new Lives();
    await lives.start();
    const asked = gate();
    const says = gate<JsonObject>();
    const onAsked = (): Promise<JsonObject> => {
      asked.open();
      return says.opened;
    };
    const client = await mcpClient(name, lives.url, { onAsked });
    const called = sent(client, name, lives, 'refund A-17');
    await asked.opened;
    await lives.restart();
    says.open({ action: 'accept', content: {} });
    expect(await called).toMatchObject({ content: [{ text: 'A-17 is refunded.' }] });
    expect(lives.effects.count('refund')).toBe(1);
  });
});

it('MCP, long runs: a task is found again in the next process', async () => {
  const lives = new Lives();
  await lives.start();
  const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const ask = (method: string, params: JsonObject) => modern(lives.url, method, params, { capabilities });
  const { result = {} } = await ask('tools/call', { name: 'scenario', arguments: { input: 'refund A-17' } });
  const taskId = String(result['taskId']);
  await lives.restart();
  const comes = (status: string) =>
    until(async () => (await ask('tasks/get', { taskId })).result?.['status'] === status);
  await comes('input_required');
  const { inputRequests } = (await ask('tasks/get', { taskId })).result as { inputRequests: JsonObject };
  await lives.restart();
  const [token = ''] = Object.keys(inputRequests);
  await ask('tasks/update', { taskId, inputResponses: { [token]: { action: 'accept', content: {} } } });
  await until(() => lives.effects.count('refund') === 1);
  await lives.restart();
  await comes('completed');
  expect(lives.effects.count('refund')).toBe(1);
});
