/** Requests that nobody means well with: made from good ones and from nothing, the same for the same seed. */
import { seededRandom } from '#testing';

export interface OddRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

export interface OddOptions {
  readonly seed: number;
  /** Methods and path templates, as `POST /api/chat/:id/stop`. */
  readonly routes: readonly (readonly [method: string, path: string])[];
  /** Ids that are real, some of them others' own. */
  readonly ids: readonly string[];
  /** Bodies that would be taken. */
  readonly bodies: readonly unknown[];
  /** Headers of a visitor who is let in. */
  readonly headers: Readonly<Record<string, string>>;
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];
const ODD_TEXTS = [
  '',
  ' ',
  '..',
  '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
  '%00',
  '%ff%fe',
  '%ED%A0%80',
  '__proto__',
  'constructor',
  'null',
  '-1',
  '1e309',
  '999999999999999999999',
  'a'.repeat(5_000),
  '%F0%9F%92%A3',
  "'; DROP TABLE runs; --",
  '<script>alert(1)</script>',
  '$(id)',
  '*',
];
const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  '',
  ' ',
  '\ud800',
  '\0',
  'x'.repeat(50_000),
  [],
  [[]],
  {},
  { __proto__: null, constructor: 1 },
  { toString: 'no function' },
  Array.from({ length: 500 }, (_, index) => index),
];
const ODD_HEADERS: readonly (readonly [string, string])[] = [
  ['content-type', 'text/plain'],
  ['content-type', 'application/json; charset=utf-16'],
  ['content-type', 'multipart/form-data'],
  ['content-encoding', 'gzip'],
  ['last-event-id', '-7'],
  ['last-event-id', 'x'],
  ['last-event-id', '99999999999999999999'],
  ['range', 'bytes=5-2'],
  ['range', 'bytes=-'],
  ['range', 'lines=1-2'],
  ['accept', 'image/png'],
  ['accept', 'text/event-stream'],
  ['a2a-version', '0.1'],
  ['mcp-protocol-version', '1999-01-01'],
  ['mcp-session-id', 'x'],
  ['mcp-method', 'tools/list'],
  ['idempotency-key', 'k'.repeat(3_000)],
  ['if-none-match', '*'],
  ['origin', 'https://evil.example'],
  ['host', 'evil.example'],
  ['x-forwarded-for', '127.0.0.1'],
  ['transfer-encoding', 'chunked'],
  ['traceparent', '00-zz'],
];

export class OddRequests {
  readonly #options: OddOptions;
  readonly #random: () => number;

  constructor(options: OddOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
  }

  next(): OddRequest {
    const { routes, headers } = this.#options;
    const [method, template] = this.#pick(routes);
    const asked = this.#chance(0.9) ? method : this.#pick(METHODS);
    const path = `${this.#path(template)}${this.#chance(0.3) ? this.#query() : ''}`.replaceAll(' ', '%20');
    const odd = this.#chance(0.3) ? Object.fromEntries([this.#pick(ODD_HEADERS)]) : {};
    const body = asked === 'GET' || asked === 'HEAD' ? undefined : this.#body();
    const all: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const own = this.#chance(0.95)
      ? headers
      : { authorization: this.#pick(['Bearer bad', 'Basic eDp5', 'Bearer', '']) };
    return { method: asked, path, headers: { ...all, ...own, ...odd }, ...(body === undefined ? {} : { body }) };
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  #chance(of: number): boolean {
    return this.#random() < of;
  }

  #path(template: string): string {
    return template.replaceAll(/:[a-zA-Z]+(\{[^}]*\})?|\*/g, () => this.#part());
  }

  #part(): string {
    return this.#chance(0.5) ? encodeURIComponent(this.#pick(this.#options.ids)) : this.#pick(ODD_TEXTS);
  }

  #query(): string {
    const names = [
      'limit',
      'after',
      'from',
      'waitMs',
      'tasks',
      'status',
      'label',
      'tenant',
      'user',
      'as',
      'x',
      'pageSize',
      'historyLength',
    ];
    return `?${this.#pick(names)}=${this.#chance(0.5) ? this.#part() : this.#pick(ODD_TEXTS)}&${this.#pick(names)}`;
  }

  #body(): Buffer {
    if (this.#chance(0.05)) return Buffer.from(Array.from({ length: 60 }, () => Math.floor(this.#random() * 256)));
    if (this.#chance(0.03)) return Buffer.from(`${'['.repeat(20_000)}`);
    if (this.#chance(0.03)) return Buffer.from(`{"a":${'{"a":'.repeat(3_000)}1${'}'.repeat(3_001)}`);
    const value = this.#changed(structuredClone(this.#pick(this.#options.bodies)), 0.12);
    const text = JSON.stringify(value) ?? 'undefined';
    return Buffer.from(this.#chance(0.08) ? text.slice(0, Math.floor(this.#random() * text.length)) : text);
  }

  /** The value with some parts of it left out, doubled, or of another kind. */
  #changed(value: unknown, often: number): unknown {
    if (this.#chance(often)) return this.#chance(0.4) ? this.#pick(this.#options.ids) : this.#pick(ODD_VALUES);
    if (Array.isArray(value)) {
      const items = value.map((item) => this.#changed(item, often));
      return this.#chance(0.1) ? [...items, ...items] : items;
    }
    if (typeof value !== 'object' || value === null) return value;
    const fields = Object.entries(value).flatMap(([name, field]): [string, unknown][] =>
      this.#chance(0.06)
        ? []
        : [
            [
              this.#chance(0.03) ? this.#pick(['__proto__', 'id', 'toString', name]) : name,
              this.#changed(field, often),
            ],
          ],
    );
    return Object.fromEntries(fields);
  }
}
