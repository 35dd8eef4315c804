/** Tools that do whatever a tool can do wrong. What takes them long to make is made before anybody watches. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolContext } from '#pilotage';
import type { Effect } from '#pilotage/tools';
import type { Tool } from '#tools';
import { hostile, liar, revoked } from '../kit/odd-throws.ts';

/** What hostile tools say when nobody listens, so that it can be told from what is our doing. */
export const OURS_NOT = 'hostile: nobody catches this';

const cycle: Record<string, unknown> = { name: 'cycle' };
cycle['self'] = cycle;
const deep = (() => {
  let inner: unknown = 1;
  for (let level = 0; level < 20_000; level += 1) inner = [inner];
  return inner;
})();
const sparse: unknown[] = [];
sparse[1e8] = 1;
const GIANTS: Readonly<Record<string, unknown>> = {
  text: 'x'.repeat(20_000_000),
  'two-byte text': 'é\u{1f600}'.repeat(4_000_000),
  'escaped text': '\u0001"\\'.repeat(3_000_000),
  list: Array.from({ length: 400_000 }, (_, at) => at),
  keys: Object.fromEntries(Array.from({ length: 300_000 }, (_, at) => [`key ${at}`, at])),
  'long keys': Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at}${'k'.repeat(50_000)}`, at])),
  'many lists': Array.from({ length: 1_000 }, () => Array.from({ length: 300 }, () => [])),
  bytes: new Uint8Array(20_000_000),
  // Within the limits, or about there.
  'text at its limit': 'é'.repeat(7_000_000),
  'small text': 'word '.repeat(10_000),
};

/** Of each attempt. */
const TIMEOUT_MS = 100;
/** What goes on after it was given up ends some time later, or it takes the machine from all cases behind it. */
const LONG_GIVEN_UP_MS = 1_500;

type Run = (args: Record<string, unknown>, context: ToolContext) => unknown;

const never = (): Promise<never> => new Promise(() => {});
const rejected = (reason: unknown): Promise<never> => Promise.reject(reason);

export const behaviours: Readonly<Record<string, Run>> = {
  value: () => ({ receipt: 1 }),
  'throws a proxy': () => {
    throw hostile();
  },
  'throws a revoked proxy': () => {
    throw revoked();
  },
  'throws a liar': (args) => {
    throw liar({}, Object.keys(args).length);
  },
  'throws nothing': () => rejected(undefined),
  'throws a symbol': () => rejected(Symbol('no')),
  'throws a bigint': () => rejected(5n),
  'throws a function': () => rejected(() => {}),
  'throws a cycle': () => rejected(cycle),
  'throws a long message': () => rejected(new Error('no '.repeat(2_000_000))),
  'throws an error of errors': () => rejected(new AggregateError([hostile(), cycle, new Error('x', { cause: cycle })])),
  'throws what looks like ours': () =>
    rejected(Object.assign(new Error('no'), { code: 'lease_lost', data: cycle, [Symbol.for('pilotage.error')]: true })),
  'throws an abort of its own': () => rejected(new DOMException('no', 'AbortError')),
  'throws late': async () => {
    await sleep(5);
    throw hostile();
  },
  'throws after the abort': (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => setTimeout(() => reject(hostile()), 20))),
  'a thenable that settles twice': () => ({
    // biome-ignore lint/suspicious/noThenProperty: that is what is tried.
    then(resolve: (value: unknown) => void, reject: (reason: unknown) => void) {
      resolve(1);
      reject(new Error('no'));
      resolve(2);
      throw new Error('still');
    },
  }),
  'a thenable that never settles': () => ({
    // biome-ignore lint/suspicious/noThenProperty: that is what is tried.
    then() {},
  }),
  'a then that throws': () =>
    Object.defineProperty({}, 'then', {
      get() {
        throw hostile();
      },
    }),
  'thenables without end': () => {
    const until = performance.now() + LONG_GIVEN_UP_MS;
    const again = (): object => ({
      // biome-ignore lint/suspicious/noThenProperty: that is what is tried.
      then: (resolve: (value: unknown) => void) => setImmediate(() => resolve(performance.now() < until ? again() : 1)),
    });
    return again();
  },
  'never settles': never,
  'never settles, deaf, with a timer': () => new Promise((resolve) => setTimeout(resolve, 3_000).unref()),
  'a proxy': () => hostile(),
  'a revoked proxy': () => revoked(),
  'a liar': () => liar({}, 3),
  'a cycle': () => cycle,
  'a deep value': () => deep,
  'a sparse list': () => sparse,
  'a long empty list': () => new Array(4e9),
  'a getter that throws': () => ({
    get value() {
      throw new Error(OURS_NOT);
    },
  }),
  'a toJSON that throws': () => ({
    toJSON() {
      throw hostile();
    },
  }),
  'a toJSON that gives itself': () => {
    const value = { toJSON: (): unknown => value };
    return value;
  },
  'a function': () => () => 1,
  'a symbol': () => Symbol('x'),
  'a bigint': () => 5n,
  'not a number': () => ({ a: Number.NaN, b: -0, c: Number.POSITIVE_INFINITY }),
  'a date': () => new Date(Number.NaN),
  'a map': () => new Map([[{}, cycle]]),
  'a prototype': () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  'lone surrogates': () => ({ '\ud800': '\udfff' }),
  undefined: () => undefined,
  'a generator': function* generator() {
    for (;;) yield 1;
  },
  'changes its arguments': (args) => {
    args['self'] = args;
    args['big'] = GIANTS['keys'];
    return args;
  },
  'changes its arguments later': (args) => {
    setTimeout(() => {
      args['late'] = args;
    }, 5);
    return { kept: args };
  },
  'says pieces without end': async (_, { emit, signal }) => {
    while (!signal.aborted) {
      emit({ piece: 'x'.repeat(100) });
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
  'says odd pieces': (_, { emit }) => {
    for (const odd of [cycle, hostile(), 5n, undefined, sparse, GIANTS['text'], revoked()]) {
      try {
        emit(odd as never);
      } catch {
        // It may say no.
      }
    }
    return 1;
  },
  'says pieces after its end': (_, { emit }) => {
    setTimeout(() => {
      try {
        emit('late');
      } catch {
        // It may say no.
      }
    }, 10);
    return 1;
  },
  'rejects beside': () => {
    void rejected(new Error(OURS_NOT));
    return 1;
  },
  'throws beside': () => {
    setTimeout(() => {
      throw new Error(OURS_NOT);
    }, 1);
    return 1;
  },
  'saves odd artifacts': async (_, context) => {
    for (const odd of [hostile(), cycle, 5, null, GIANTS['text']]) {
      await Promise.resolve()
        .then(() => context.saveArtifact(odd as never, { mime: 'x\u0000' } as never))
        .catch(() => {});
    }
    return 1;
  },
  'holds on to its context': (_, context) => ({ context }),
  ...Object.fromEntries(Object.entries(GIANTS).map(([name, value]) => [`giant ${name}`, () => value])),
  'a fresh giant': () => 'x'.repeat(3_000_000),
};

export const effects: readonly Effect[] = ['pure', 'read', 'keyed', 'once'];
const names = Object.keys(behaviours);

export function behaviourOf(turn: number): string {
  return names[turn % names.length] ?? 'value';
}

/** @param behaviour of the tool in this run. */
export function oddTool(effect: Effect, behaviour: (run: string) => string): Tool {
  return {
    name: 'odd',
    description: 'Does something odd.',
    effect,
    inputSchema: { type: 'object' },
    timeoutMs: TIMEOUT_MS,
    execute: (args, context) => behaviours[behaviour(context.identity.run)]?.(args as Record<string, unknown>, context),
  };
}
