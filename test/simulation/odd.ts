/** What programs throw and give that nobody expects. */

export const ODD = [
  'proxy',
  'getter',
  'then',
  'bigint',
  'symbol',
  'object',
  'nothing',
  'text',
  'circle',
  'code',
] as const;
export type Odd = (typeof ODD)[number];

/** Whatever looks closer at one of these is told off. */
export function oddValue(odd: Odd): unknown {
  switch (odd) {
    case 'proxy':
      return new Proxy(new Error('hidden'), { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse });
    case 'getter':
      return Object.defineProperty(new Error('hidden'), 'message', { get: refuse });
    case 'then':
      // A value that is no promise, although it has a `then`.
      return Object.defineProperty({}, THEN, { get: refuse });
    case 'bigint':
      return 10n ** 30n;
    case 'symbol':
      return Symbol('odd');
    case 'object':
      return { message: { deep: [1n, Symbol('odd')] }, code: { no: 'text' }, retryable: 'perhaps' };
    case 'nothing':
      return undefined;
    case 'text':
      return 'odd';
    case 'circle': {
      const circle: { self?: unknown } = {};
      circle.self = circle;
      return circle;
    }
    case 'code':
      return Object.assign(new Error('odd'), { code: 'journal_conflict', cause: 1n });
    default:
      return odd satisfies never;
  }
}

const THEN = 'then';

function refuse(): never {
  throw new Error('Nobody looks in here.');
}
