/** One redaction for whatever is written: no key that this process was given, and nothing that looks like one in errors. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type EntryBody, knownSecrets, local, Redaction, type RedactionOptions } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { openaiCompatible } from '#model/openai-compatible';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { OutcomeUnknown } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { thenTell } from '../kit/tasks.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const KEY = 'zq9-a-key-of-no-known-shape-7431';
const GITHUB = `ghp_${'a1B2c3D4'.repeat(5)}`;

afterEach(() => vi.unstubAllEnvs());

/** A gateway that tells everybody the key that it was sent. */
async function gateway(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    response.writeHead(400, { 'content-type': 'application/json' });
    const sent = String(request.headers.authorization);
    response.end(JSON.stringify({ error: { message: `Bad key: ${sent} (${Buffer.from(sent).toString('base64')})` } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, close: () => server.close() };
}

/** Everything that the journal of the run holds, as it is stored. */
async function writtenBy(
  redact: RedactionOptions | undefined,
  options: { planner: never; tools?: never; query?: string },
) {
  const journal = memoryJournal();
  const { query = 'q', ...rest } = options;
  const base = world({ ...(rest as object), journal, ...(redact === undefined ? {} : { redact }) } as never);
  const run = await start(base, { query });
  const result = await run.result();
  return { text: JSON.stringify(await journal.read(run.id)), result, run, journal };
}

describe('a key that a gateway echoes', () => {
  it('is not in the file of the journal, the result, or what is told of faults; nor encoded', async () => {
    const { url, close } = await gateway();
    const path = join(mkdtempSync(join(tmpdir(), 'pilotage-secrets-')), 'runs.db');
    const journal = sqliteJournal({ path });
    const planner = react({ model: openaiCompatible({ baseUrl: url, model: 'm', apiKey: KEY }), retries: 0 });
    const runtime = createRuntime({ planner, journal });
    const run = await runtime.start('q', { identity: local('ana') });
    const result = await run.result();
    expect(JSON.stringify(result)).toContain('[redacted:secret]');
    expect(JSON.stringify(result)).not.toContain(KEY);
    await runtime.close();
    await journal.close();
    close();
    const file = readFileSync(path).toString('latin1');
    expect(file).not.toContain(KEY);
    expect(file).not.toContain(Buffer.from(`Bearer ${KEY}`).toString('base64').slice(12, 40));
  });
});

describe('a known value', () => {
  it.each<[string, (key: string) => string]>([
    ['as it is', (key) => key],
    ['in JSON in JSON', (key) => JSON.stringify(JSON.stringify({ key }))],
    ['in an address', (key) => `https://x/?k=${encodeURIComponent(key)}`],
    ['in base64', (key) => Buffer.from(key).toString('base64')],
    ['in base64 behind a name', (key) => Buffer.from(`ana:${key}`).toString('base64')],
    ['in base64 behind another', (key) => Buffer.from(`an:${key}x`).toString('base64url')],
  ])('is found %s', (_, written) => {
    const key = 'p/+ "w"ö\\-7781-abcdef';
    const redaction = new Redaction({ rules: [key] });
    const clean = redaction.known(`before ${written(key)} after`);
    expect(clean).toContain('[redacted:secret]');
    expect(clean).toMatch(/^before .* after$/);
    expect(Buffer.from(clean, 'base64').toString()).not.toContain('7781-abc');
  });

  it('of a variable that is named as a key is left out everywhere: in words, arguments, values, artifacts and controls', async () => {
    vi.stubEnv('SOME_SERVICE_API_KEY', KEY);
    const tool = make('leak', () => ({ was: KEY, much: `${'x'.repeat(40_000)}${KEY}` }));
    const { text, run, journal } = await writtenBy(undefined, {
      planner: thenTell(call('leak', { key: KEY })) as never,
      tools: [tool] as never,
      query: `Use ${KEY}`,
    });
    expect(text).not.toContain(KEY);
    expect(text).toContain('Use [redacted:secret]');
    expect(JSON.stringify(await run.payload())).not.toContain(KEY);
    const { identity } = await run.state();
    for (const { artifactRef } of (await journal.artifacts.list(identity, 100)).rows) {
      const artifact = await journal.artifacts.get(identity, artifactRef);
      expect(Buffer.from(artifact?.bytes ?? []).toString()).not.toContain(KEY);
    }
  });
});

describe('what looks like a secret', () => {
  it('is left out of errors, and not of what a run works with', async () => {
    const tool = make('fails', () => {
      throw Object.assign(new Error(`401 for ${GITHUB}`), { data: { header: `Bearer ${GITHUB}` } });
    });
    const fine = make('fine', (args) => args);
    const { text } = await writtenBy(undefined, {
      planner: script(call('fails'), call('fine', { token: GITHUB })) as never,
      tools: [tool, fine] as never,
    });
    expect(text).not.toContain(`401 for ${GITHUB}`);
    expect(text).toContain('401 for [redacted:api_key]');
    expect(text).not.toContain(`Bearer ${GITHUB}`);
    // Twice: as it was given, and as it came back.
    expect(text.split(GITHUB)).toHaveLength(3);
  });

  it('is left out of the error that ends a run, and of what is told of faults', async () => {
    const told: unknown[] = [];
    const base = world({
      planner: () => {
        throw new Error(`postgres://ana:hunter2hunter2@db/x refused`);
      },
    });
    const run = await start(base);
    expect(await run.result()).toMatchObject({ status: 'failed' });
    expect(JSON.stringify(await run.result())).not.toContain('hunter2');
    const redaction = new Redaction();
    told.push(redaction.thrown(new Error(`no ${GITHUB}`)));
    expect(String(told[0])).toBe('Error: no [redacted:api_key]');
  });

  it('is left out of why nobody knows whether a call has happened, and not of what the call was given', async () => {
    const unsure = make('send', () => Promise.reject(new OutcomeUnknown(`cut off, with ${GITHUB}`)), {
      effect: 'once',
    });
    const planner = thenTell(call('send', { to: GITHUB })) as never;
    const { result } = await writtenBy(undefined, { planner, tools: [unsure] as never });
    const payload = { args: { to: GITHUB }, why: 'cut off, with [redacted:api_key]' };
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt', payload }] });
  });
});

describe('the rules of the program', () => {
  const mail = /[\w.]+@[\w.]+/;
  const planner = thenTell(call('echo', { to: 'ana@example.org' })) as never;
  const tools = [make('echo', (args) => args)] as never;

  it('leave goals and values alone, but where they are asked for', async () => {
    const query = 'Write to ana@example.org';
    const left = await writtenBy({ rules: [mail] }, { planner, tools, query });
    expect(left.text).toContain(query);
    const goals = await writtenBy({ rules: [mail], also: ['goals'] }, { planner, tools, query });
    expect(goals.text).toContain('Write to [redacted]');
    expect(goals.text).toContain('"to":"ana@example.org"');
    const all = await writtenBy({ rules: [mail], also: ['goals', 'results', 'texts'] }, { planner, tools, query });
    // The argument itself is what the tool is called with.
    expect(all.text.split('ana@example.org')).toHaveLength(2);
  });

  it('a function that fails hides the text', () => {
    const redaction = new Redaction({
      rules: [
        () => {
          throw new Error('no');
        },
      ],
    });
    expect(redaction.all('anything')).toBe('[redacted]');
  });

  it.each([
    [{ rules: ['short'] }],
    [{ rules: [7] }],
    [{ rules: 'all' }],
    [{ also: ['everything'] }],
  ])('%j is refused', (redact) => {
    expect(() => createRuntime({ planner: () => finish(), redact: redact as never })).toThrow(
      expect.objectContaining({ code: 'invalid_config' }),
    );
  });
});

describe('an entry', () => {
  it('is the same object when nothing is to be left out, and keeps its ids whatever the rules say', async () => {
    const entries: EntryBody[] = [
      { kind: 'call_ended', step: 0, call: 0, outcome: { kind: 'value', value: { a: 'b' } }, attempts: 1 },
      { kind: 'moved', step: 0, startedAt: 1, decision: { kind: 'call_tool', tool: 't', args: { a: 1 } } },
    ];
    const plain = new Redaction();
    if (knownSecrets.isEmpty) for (const entry of entries) expect(plain.entry(entry)).toBe(entry);
    const journal = memoryJournal();
    const greedy = world({
      journal,
      planner: thenTell(call('echo_tool', { text: 'call_tool' })),
      tools: [make('echo_tool', (args) => args)],
      redact: { rules: ['call_tool', 'echo_tool'] },
    } as never);
    const run = await start(greedy);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const [moved] = await entriesOf(journal, run, 'moved');
    expect(moved?.decision).toMatchObject({
      kind: 'call_tool',
      tool: 'echo_tool',
      args: { text: '[redacted:secret]' },
    });
  });

  it('comes to an end with long texts of beginnings, which a search that goes back would not', () => {
    const redaction = new Redaction({ rules: [KEY] });
    for (const part of [KEY.slice(0, -1), 'Bearer ', 'sk-', '://a:', '-----BEGIN PRIVATE KEY-----', 'password=']) {
      const text = part.repeat(Math.ceil(400_000 / part.length));
      expect(redaction.all(text)).not.toContain(KEY);
    }
  });

  it('is JSON that the fold takes, for any rule and any text', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 8 }), fc.jsonValue(), (secret, value) => {
        fc.pre(secret.trim().length >= 8);
        const redaction = new Redaction({ rules: [secret] });
        const bytes = Buffer.from(JSON.stringify({ value, secret }));
        const clean = JSON.parse(Buffer.from(redaction.bytes(bytes, 'application/json')).toString()) as object;
        expect(JSON.stringify(clean)).not.toContain(JSON.stringify(secret.trim()).slice(1, -1));
      }),
    );
  });
});
