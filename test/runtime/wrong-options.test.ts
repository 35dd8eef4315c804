/** What would be passed over in silence, or end as a TypeError from inside: maps, promises and functions for objects, and what stands in them. */
import { expect, it } from 'vitest';
import { local } from '#core';
import { flow, node } from '#flow';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { openaiCompatible } from '#model/openai-compatible';
import { createRuntime, type Runtime } from '#runtime';
import { finish } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { start, world } from '../kit/world.ts';

const planner = (): never => finish(null) as never;
const create = (options: object): Runtime =>
  createRuntime({ planner, tools: [], journal: memoryJournal(), ...options });

it.each<[string, object]>([
  ['redact has no option "rule". Did you mean rules?', { redact: { rule: ['a secret'] } }],
  ['progress has no option "hint"', { progress: { hint: 3 } }],
  ['memory has no option "turn". Did you mean turns?', { memory: { strategy: 'window', turn: 3 } }],
  ['The option limits of createRuntime is a function; give an object', { limits: () => ({ steps: 1 }) }],
  ['The option limits of createRuntime is an object of the class Map', { limits: new Map([['steps', 1]]) }],
  ['tools must be a list of tools, or an object of tools by their names', { tools: new Set() }],
  ['tools must be a list of tools, or an object of tools by their names', { tools: Promise.resolve([]) }],
  ['The option journal must be a journal', { journal: Promise.resolve(memoryJournal()) }],
  ['The option journal must be a journal', { journal: null }],
])('a runtime is not made with what it would not hear: %s', (message, options) => {
  expect(() => create(options)).toThrow(
    expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(message) }),
  );
});

it.each<[string, object]>([
  [
    'The option signal of start is an object of the class AbortController; give an AbortSignal',
    { signal: new AbortController() },
  ],
  [
    'history[1] has no option',
    {
      history: [
        { role: 'user', text: 'a' },
        { role: 'user', contents: 'b' },
      ],
    },
  ],
  ['history[0] is null; give an object', { history: [null] }],
  ['The option context of start is an object of the class Map', { context: new Map() }],
])('a run is not started with what it would not hear: %s', async (message, options) => {
  const runtime = create({});
  await expect(runtime.start('q', { identity: local('ana'), ...options })).rejects.toMatchObject({
    code: 'invalid_config',
    message: expect.stringContaining(message),
  });
  expect(await runtime.list()).toEqual([]);
  await runtime.close();
});

it.each([
  ['synchronous', 'FULL'],
  ['busyTimeoutMs', Number.NaN],
  ['watchIntervalMs', 0],
])('a file is not opened with a %s that would be taken for another one', (name, value) => {
  expect(() => sqliteJournal({ path: temporaryFile(), [name]: value })).toThrow(
    expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(`${name} of sqliteJournal`) }),
  );
});

it('headers that would not be sent are refused, and an address that is no text', () => {
  const made = (options: object) => openaiCompatible({ baseUrl: 'http://127.0.0.1:1/v1', model: 'm', ...options });
  expect(() => made({ headers: new Headers({ 'x-key': 'k' }) })).toThrow(/headers .* of the class Headers/);
  expect(() => made({ baseUrl: new URL('http://127.0.0.1:1/v1') })).toThrow(/baseUrl must be a string/);
});

it('what is no id names no run', async () => {
  const made = world({ planner });
  const run = await start(made);
  await run.result();
  expect(() => made.runtime.run(undefined as never)).toThrow(/named by its id/);
});

it('objects with a class, without a prototype, frozen or with what is undefined are options still; some schemas are functions', async () => {
  class Options {
    readonly planner = planner;
    readonly tools = [];
    readonly journal = memoryJournal();
    readonly ofTheirOwn = 1;
  }
  const bare = Object.assign(Object.create(null), { planner, tools: [], limits: undefined, journal: memoryJournal() });
  for (const options of [new Options(), Object.freeze(bare)]) {
    const runtime = createRuntime(options);
    const run = await runtime.start('q', Object.freeze({ identity: local('ana'), history: undefined }) as never);
    expect((await run.result()).status).toBe('finished');
    await runtime.close();
  }
  const jsonSchema = { input: () => ({ type: 'string' }), output: () => ({ type: 'string' }) };
  const validate = (value: unknown) => ({ value });
  const text = Object.assign(() => null, { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } });
  const only = node('only', { inputSchema: text as never, effect: 'pure', execute: (value: string) => value });
  expect(flow({ name: 'f', inputSchema: text as never, entry: only, exit: only }).name).toBe('f');
});

const OF_SOMEBODY: readonly [string, (runtime: Runtime, whose: never) => unknown][] = [
  ['runtime.store.of', ({ store }, whose) => store.of(whose)],
  ['runtime.sessions.get', ({ sessions }, whose) => sessions.get(whose)],
  ['runtime.sessions.setTitle', ({ sessions }, whose) => sessions.setTitle(whose, null)],
  ['runtime.sessions.delete', ({ sessions }, whose) => sessions.delete(whose)],
  ['runtime.tasks.list', ({ tasks }, whose) => tasks.list(whose)],
  ['runtime.erase', (runtime, whose) => runtime.erase(whose)],
];

it.each(OF_SOMEBODY)('%s refuses null, undefined and half of somebody as whose it is', async (_, use) => {
  const runtime = create({});
  for (const nobody of [null, undefined, { tenant: 'local' }]) {
    await expect((async () => use(runtime, nobody as never))()).rejects.toMatchObject({ code: 'identity_required' });
  }
  await runtime.close();
});

it.each(OF_SOMEBODY)('%s takes an object of a class as whose it is', async (_, use) => {
  class Somebody {
    get tenant(): string {
      return 'local';
    }
    get user(): string {
      return 'ana';
    }
    get session(): string {
      return 'default';
    }
  }
  const runtime = create({});
  // There is no session that could have a title.
  const taken = (async () => use(runtime, new Somebody() as never))().catch(({ code }) => code);
  expect(await taken).not.toBe('identity_required');
  await runtime.close();
});

it('a key or a namespace that the store does not take is refused with the reason', async () => {
  const runtime = create({});
  for (const text of ['a\0b', '\ud800']) {
    const message = expect.stringContaining('without the character 0 and halves of characters');
    await expect(runtime.store.put(['a'], text, 1)).rejects.toMatchObject({ code: 'store_refused', message });
    await expect(runtime.store.put([text], 'a', 1)).rejects.toMatchObject({ code: 'store_refused', message });
  }
  await runtime.close();
});
