/** The process that asks another agent is killed while that is at work: the task is found again, and the agent is asked once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { bear } from '../kit/lives.ts';
import { until } from '../kit/waiting.ts';
import { BINDINGS } from './a2a-kit.ts';
import { sdkPeer } from './peers.ts';

it.each(BINDINGS)('an agent is asked once over %s by a process that is killed and started again', async (binding) => {
  const { url, log } = await sdkPeer(binding);
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = new URL('./a2a-tool-child.ts', import.meta.url).pathname;
  const first = bear({ program, folder, args: [url] }, () => {});
  await until(async () => (await log()).length > 0);
  first.child.kill('SIGKILL');
  expect(await first.end).toBe(true);
  const lines: string[] = [];
  const second = bear({ program, folder, args: [url] }, (line) => lines.push(line));
  await second.end;
  expect(lines.at(-1)).toContain('You said wait 2000.');
  expect(await log()).toEqual(['message wait 2000']);
});
