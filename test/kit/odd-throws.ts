/** Values that do the worst when they are read. */

const TRAPS = [
  'apply',
  'construct',
  'defineProperty',
  'deleteProperty',
  'get',
  'getOwnPropertyDescriptor',
  'getPrototypeOf',
  'has',
  'isExtensible',
  'ownKeys',
  'preventExtensions',
  'set',
  'setPrototypeOf',
] as const;

/** Every trap throws, and what it throws does too. */
export function hostile(target: object = {}): object {
  const handler: Record<string, () => never> = {};
  for (const trap of TRAPS) {
    handler[trap] = () => {
      throw hostile();
    };
  }
  return new Proxy(target, handler);
}

export function revoked(target: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** Counts how often it was asked. */
export function counter(from = 0): () => number {
  let count = from;
  return () => {
    count += 1;
    return count;
  };
}

/** Gives something else each time that it is asked. */
export function liar(target: object, seed: number): object {
  const asked = counter(seed);
  const lies = [7n, Symbol('lie'), 'a word', -1, Number.NaN, null, undefined, 3e9, true];
  return new Proxy(target, {
    get(_, name): unknown {
      if (name === 'then') return undefined;
      const turn = asked();
      if (turn % 11 === 0) throw new Error('not now');
      if (turn % 7 === 0) return liar({}, turn);
      return lies[turn % lies.length];
    },
    has: () => asked() % 2 === 0,
    ownKeys: () => ['code', 'kind', `key${asked()}`],
    getOwnPropertyDescriptor: () => ({ value: asked(), enumerable: true, configurable: true }),
    getPrototypeOf: () => (asked() % 3 === 0 ? Error.prototype : Object.prototype),
  });
}

function withFields(fields: Record<string, unknown>): Error {
  return Object.defineProperties(
    new Error('x'),
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { value }])),
  );
}

function withGetters(...names: string[]): Error {
  const error = new Error('x');
  for (const name of names) {
    Object.defineProperty(error, name, {
      get: () => {
        throw new Error(`${name} cannot be read`);
      },
    });
  }
  return error;
}

/** What a program may throw, made anew each time. */
export const ODD_THROWS: readonly (readonly [string, () => unknown])[] = [
  ['a proxy of which every trap throws', () => hostile()],
  ['such a proxy of an error', () => hostile(new Error('x'))],
  ['such a proxy of a function', () => hostile(() => {})],
  ['a revoked proxy', () => revoked()],
  ['a revoked proxy of a list', () => revoked([])],
  ['a proxy that lies', () => liar({}, 1)],
  ['a proxy of an error that lies', () => liar(new Error('x'), 5)],
  ['a bigint as message', () => withFields({ message: 7n })],
  ['a symbol as message', () => withFields({ message: Symbol('s') })],
  ['an object as message', () => withFields({ message: { a: 1 } })],
  ['an object without a prototype as message', () => withFields({ message: Object.create(null) })],
  ['a bigint as name and no message', () => withFields({ message: '', name: 7n })],
  ['a message that cannot be read', () => withGetters('message')],
  ['a code that cannot be read', () => withGetters('code')],
  ['data that cannot be read', () => withGetters('data')],
  ['a flag that cannot be read', () => withGetters('retryable', 'status', 'statusCode')],
  ['a name that cannot be read', () => withGetters('name')],
  ['all of it that cannot be read', () => withGetters('message', 'name', 'code', 'data', 'status', 'stack', 'url')],
  ['data that is hostile', () => withFields({ data: hostile() })],
  [
    'the brand of our own errors on a hostile value',
    () => ({
      [Symbol.for('pilotage.error')]: true,
      get code() {
        throw new Error('no');
      },
      toJSON: () => 7n,
    }),
  ],
  ['a bigint', () => 7n],
  ['a symbol', () => Symbol('s')],
  ['nothing', () => undefined],
  ['null', () => null],
  ['an object without a prototype', () => Object.create(null)],
  ['a function', () => () => 1],
];
