/** Runs the replay script as its users do, on a small recording of its own. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { projectDir } from '../kit/project.ts';

const dir = mkdtempSync(join(tmpdir(), 'pilotage-replay-test-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Message {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly object[];
  readonly tool_call_id?: string;
}

/** Each call as its id, its arguments as they were written, and its result. */
type Called = readonly [id: string, city: string, result: string];

function callTurn(text: string | null, ...calls: readonly Called[]): Message[] {
  const tool_calls = calls.map(([id, input]) => ({
    id,
    type: 'function',
    function: { name: input.includes('city') ? 'weather' : 'book_trip', arguments: input },
  }));
  const results = calls.map(([id, , content]) => ({ role: 'tool', content, tool_call_id: id, error: true }));
  return [{ role: 'assistant', content: text, tool_calls }, ...results];
}

const said = (role: 'user' | 'assistant', content: string): Message => ({ role, content });

/** Begins with the assistant, repeats ids and calls, writes arguments in its own way, and ends with the user. */
const MESSAGES: readonly Message[] = [
  said('assistant', 'Good day!'),
  said('user', 'Which is warmer, Oslo or Rome?'),
  ...callTurn(null, ['c1', '{ "city":  "Oslo" }', '503 Service Unavailable'], ['c2', '{"city":"Rome"}', '30']),
  ...callTurn(
    'Again.',
    ['c1', '{"city":"Oslo"}', '12'],
    ['c3', '{"city":"Oslo"}', '13'],
    ['c4', '{"city":"Rome"}', ''],
  ),
  said('assistant', 'Rome.'),
  said('user', 'Take me there.'),
  ...callTurn('', ['c1', '{"to":"Rome","nights":2}', '{"ok":true}']),
  ...callTurn('And back.', ['c1', '{"to":"Oslo","nights":0}', 'Error: no seat'], ['c5', '{"city":"Rome"}', '29']),
  said('assistant', 'There is no way back.'),
  said('user', 'Then I stay.'),
];
const CALLS = 8;

const schema = (...names: readonly string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: name === 'nights' ? 'integer' : 'string' }])),
  required: names,
  additionalProperties: false,
});

const ROW = {
  id: 'small',
  system: 'You plan trips.',
  tools: [
    { name: 'weather', description: 'Degrees in a city', parameters: schema('city') },
    { name: 'book_trip', description: 'Books a trip', parameters: schema('to', 'nights') },
  ],
  messages: MESSAGES,
};

function writeRows(name: string, ...rows: readonly unknown[]): string {
  const path = join(dir, name);
  writeFileSync(path, gzipSync(rows.map((row) => `${JSON.stringify(row)}\n`).join('')));
  return path;
}

interface Ran {
  readonly code: number;
  readonly lines: readonly string[];
  readonly total: unknown;
}

function replay(...args: readonly string[]): Promise<Ran> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['scripts/replay-recorded.ts', ...args], { cwd: projectDir }, (error, stdout) => {
      const code = error === null ? 0 : error.code;
      if (typeof code !== 'number') return reject(error);
      const lines = stdout.trimEnd().split('\n');
      resolve({ code, lines, total: lines.at(-1)?.startsWith('{') ? JSON.parse(lines.at(-1) ?? '') : undefined });
    });
  });
}

describe('replay-recorded', () => {
  const file = writeRows('small.jsonl.gz', ROW, { ...ROW, id: 'ends with a result', messages: MESSAGES.slice(0, 16) });

  it.each([[[]], [['--stream']]])('passes a recording that the run reproduces %j', async (flags) => {
    const { code, lines, total } = await replay(file, ...flags);
    expect(lines.filter((line) => line.startsWith('FAILED'))).toEqual([]);
    expect(total).toEqual({ trajectories: 2, passed: 2, calls: 2 * CALLS, crashes: 0, hinted: 0 });
    expect(code).toBe(0);
  });

  it.each([[[]], [['--stream']]])('passes it when processes die on the way %j', async (flags) => {
    const { code, lines, total } = await replay(file, '--crash', '--seed', '3', ...flags);
    expect(lines.filter((line) => line.startsWith('FAILED'))).toEqual([]);
    expect(total).toMatchObject({ trajectories: 2, passed: 2, calls: 2 * CALLS });
    expect((total as { crashes: number }).crashes).toBeGreaterThan(0);
    expect(code).toBe(0);
  });

  it('reads no more rows than it is told to', async () => {
    const { total } = await replay(file, '--limit', '1');
    expect(total).toEqual({ trajectories: 1, passed: 1, calls: CALLS, crashes: 0, hinted: 0 });
  });

  it.each([
    [[]],
    [['--stream']],
    [['--crash']],
  ])('counts hints to a model that went round in circles apart %j', async (flags) => {
    const round = (id: string) => callTurn(null, [id, '{"city":"Oslo"}', '12']);
    const messages = [said('user', 'Go.'), ...['a', 'b', 'c', 'd'].flatMap(round), said('assistant', 'Twelve.')];
    const circles = writeRows('circles.jsonl.gz', { ...ROW, id: 'circles', messages });
    const { code, lines, total } = await replay(circles, ...flags);
    expect(lines[0]).toMatch(/^ok circles: 4 calls, \d+ requests with a hint/);
    expect((total as { hinted: number }).hinted).toBeGreaterThanOrEqual(2);
    expect(code).toBe(0);
  });

  it('fails a recording that no run here can follow, and says where', async () => {
    // A call whose arguments are no object: the runtime answers it itself, and the model is shown something else.
    const messages = [said('user', 'Go.'), ...callTurn(null, ['c1', '["city"]', 'ok']), said('assistant', 'Done.')];
    const odd = writeRows('odd.jsonl.gz', { ...ROW, id: 'odd', messages }, { ...ROW, id: 'empty', messages: [] }, ROW);
    const { code, lines, total } = await replay(odd);
    expect(lines[0]).toMatch(/^FAILED odd: request 2: message 2 is not the recorded assistant message/);
    expect(lines[1]).toMatch(/^FAILED empty: the recording does not begin/);
    expect(total).toEqual({ trajectories: 3, passed: 1, calls: CALLS, crashes: 0, hinted: 0 });
    expect(code).toBe(1);
  });

  it('asks for a file', async () => {
    expect((await replay()).code).toBe(2);
    expect((await replay(file, '--limit', 'x')).code).toBe(2);
  });
});
