/** What passes at the edge silently is found late: options that cannot be meant, a journal that throws, a lease that ends early. */
import { describe, expect, it } from 'vitest';
import { type Limits, local, PilotageError, redactor } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { whyUnavailable } from '#model';
import { react } from '#planners/react';
import { createRuntime, HeldLease, momentOf } from '#runtime';
import { scriptedModel, VirtualClock } from '#testing';
import { finish, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { start, world } from '../kit/world.ts';

const refused = async (make: () => unknown): Promise<string> => {
  try {
    await make();
  } catch (error) {
    if (PilotageError.is(error, 'invalid_config')) return error.message;
    throw error;
  }
  throw new Error('It was taken.');
};

describe('options that cannot be meant', () => {
  const model = scriptedModel([]);
  const { runtime } = world({ planner: script(finish()) });
  const open = (options: object) => createRuntime({ planner: script(finish()), journal: memoryJournal(), ...options });
  const wrong = Number.NaN;
  it.each<[string, RegExp, () => unknown]>([
    ['list status', /status.*"finish".*finished/, () => runtime.list({ status: ['finish' as never] })],
    ['list status, a hole', /status/, () => runtime.list({ status: [undefined as never] })],
    ['list since', /since.*Date\.now/, () => runtime.list({ since: wrong })],
    ['list since, infinite', /since/, () => runtime.list({ since: Number.NEGATIVE_INFINITY })],
    ['tasks.list status', /status.*"done"/, () => runtime.tasks.list(local('ana'), { status: ['done' as never] })],
    ['temperature', /temperature.*such as 0\.7/, () => react({ model, temperature: wrong })],
    ['temperature, below', /temperature/, () => react({ model, temperature: -1 })],
    ['maxOutputTokens', /maxOutputTokens.*from 1/, () => react({ model, maxOutputTokens: 0.5 })],
    ['compaction', /budgetTokens.*missing.*whole number/, () => react({ model, compaction: {} as never })],
    ['compaction.budgetTokens', /budgetTokens/, () => react({ model, compaction: { budgetTokens: wrong } })],
    ['leaseMs', /leaseMs.*from 1/, () => open({ leaseMs: Number.POSITIVE_INFINITY })],
    ['patienceMs', /patienceMs.*from 0/, () => open({ patienceMs: 0.5 })],
    ['busyTimeoutMs', /busyTimeoutMs/, () => sqliteJournal({ path: '/nowhere', busyTimeoutMs: wrong })],
    ['watchIntervalMs', /watchIntervalMs/, () => sqliteJournal({ path: '/nowhere', watchIntervalMs: 1.5 })],
  ])('%s', async (_, message, make) => {
    expect(await refused(make)).toMatch(message);
  });
});

describe('limits that are getters of a class', () => {
  class Settings {
    get steps(): number {
      return 1;
    }
    get costUsd(): number {
      return 0.5;
    }
  }

  it.each(['runtime', 'run'])('bind, given to the %s', async (to) => {
    const limits: Limits = new Settings();
    const made = world({ planner: script(finish()), ...(to === 'runtime' ? { limits } : {}) });
    const run = await start(made, to === 'run' ? { limits } : {});
    expect((await run.state()).limits).toEqual({ steps: 1, costMicroUsd: 500_000 });
  });
});

describe('a journal that throws in place of rejecting', () => {
  it.each(['journal_busy', 'journal_full'] as const)('%s: it is tried again', async (code) => {
    const clock = new VirtualClock();
    const stored = memoryJournal({ clock });
    let times = 0;
    const journal = changed(stored, {
      append: (request) => {
        times += 1;
        if (times < 3) throw new PilotageError(code, 'not now');
        return stored.append(request);
      },
    });
    const run = await start(world({ planner: script(finish('ok')), journal, clock }));
    const result = run.result();
    while (times < 3) {
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await result).toMatchObject({ status: 'finished' });
  });
});

it('a lease is certain only until a millisecond before its end: a store may count whole ones', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const claim = { run: 'r', fence: 1, signals: 0 } as never;
  const lease = new HeldLease({ journal, clock, leaseMs: 100, takeoverGraceMs: 0 }, claim, momentOf(clock));
  clock.advance(98);
  expect(lease.isCertain).toBe(true);
  clock.advance(1);
  expect(lease.isCertain).toBe(false);
});

describe('passwords in addresses', () => {
  const redact = redactor();
  const old = /(?<before>:\/\/[^\s:@/"'\\]{0,128}:)[^\s"'\\]{1,256}(?<after>@)/g;

  it('are what they were', () => {
    const parts = ['://', 'a', ':', 'b@', '@', ' ', '"', '/', 'x'.repeat(120), 'y'.repeat(140), 'h'];
    let seed = 7;
    const next = (): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed;
    };
    for (let round = 0; round < 3_000; round += 1) {
      const text = Array.from({ length: 12 }, () => parts[next() % parts.length]).join('');
      expect(redact(text)).toBe(text.replace(old, '$<before>[redacted:password]$<after>'));
    }
  });

  it('are none where there is no @, in a text of 1.2 MB', () => {
    const text = '://a:b'.repeat(200_000);
    expect(redact(text)).toBe(text);
  });
});

describe('a model that is away', () => {
  it.each<[string, unknown, string | undefined]>([
    ['fetch failed, without a cause', new TypeError('fetch failed'), 'away'],
    ['the same in other words', new TypeError('Load failed'), 'away'],
    ['gRPC UNAVAILABLE', Object.assign(new Error('14 UNAVAILABLE'), { code: 14, details: 'no connection' }), 'away'],
    ['wrapped', new Error('no reply', { cause: Object.assign(new Error('x'), { code: 14 }) }), 'away'],
    ['a wrong address', new TypeError('Failed to parse', { cause: { code: 'ERR_INVALID_URL' } }), undefined],
    ['a fault of a program', Object.assign(new TypeError('x'), { code: 'ERR_INVALID_ARG_TYPE' }), undefined],
    ['gRPC INVALID_ARGUMENT', Object.assign(new Error('3'), { code: 3 }), undefined],
    ['a DOMException of that number', new DOMException('x', 'SecurityError'), undefined],
    ['a RangeError', new RangeError('x'), undefined],
  ])('%s', (_, error, why) => {
    expect(whyUnavailable(error, false)).toBe(why);
  });
});
