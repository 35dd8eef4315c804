/** Requests that no client of ours would send, for every route of the table. */
import fc from 'fast-check';
import type { Run, Runtime } from '#runtime';
import { api, createHandler } from '#server';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { world } from '../kit/world.ts';
import { bearer } from './api-kit.ts';

/** Stands in everything of ana's, and in nothing that others are told. */
export const SECRET = 'ONLY-FOR-ANA';

interface Shot {
  readonly route: number;
  /** A number stands for one that there is. */
  readonly ids: readonly (string | number)[];
  readonly query: string;
  /** A number stands for one of those that nearly fit. */
  readonly body: string | number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly who: string;
}

/** A server with what ana has, and what dan has. */
export interface Target {
  readonly runtime: Runtime;
  readonly run: Run;
  readonly handler: ReturnType<typeof createHandler>;
  readonly routes: readonly { readonly method: string; readonly path: string }[];
  readonly faults: unknown[];
  /** How often the effect of ana's run has happened. */
  effects(): number;
}

export async function target(): Promise<Target> {
  let effects = 0;
  const pay = make('pay', async (args) => (JSON.stringify(args).includes(SECRET) ? ++effects : 0), {
    effect: 'once',
    needsApproval: true,
  });
  const made = world({
    planner: (view, signal) => script(call('pay', { secret: view.query }), finish(view.query))(view, signal),
    tools: [pay],
  });
  const identity = { tenant: 'acme', user: 'ana', session: 'talk', run: 'run_of_ana' };
  const run: Run = await made.runtime.start(SECRET, { identity, labels: { about: SECRET } });
  await run.result();
  await made.runtime.schedules.put({
    id: 'daily',
    query: SECRET,
    cron: '0 8 * * *',
    identity: { tenant: 'acme', user: 'ana' },
  });
  await theirs(made.runtime);
  const faults: unknown[] = [];
  const signedEvents = [{ prefix: 'pay:', secret: 'whsec_c2VjcmV0LW9mLXNpeHRlZW4tYnl0ZXM=', tenant: 'acme' }];
  const handler = createHandler({
    runtime: made.runtime,
    parts: [api({ signedEvents })],
    authenticate: bearer,
    maxStreamsPerUser: 5,
    onFault: (error) => void faults.push(error),
  });
  const routes = handler.app.routes.filter(({ method }) => method !== 'ALL');
  return { runtime: made.runtime, run, handler, routes, faults, effects: () => effects };
}

/** What dan has, who asks for it in all ways: his requests come further than those of others. Made again where they have deleted it. */
export async function theirs(runtime: Runtime): Promise<void> {
  const own = { tenant: 'acme', user: 'dan' };
  const run = await runtime.start('q', { identity: { ...own, session: 'chat', run: 'run_of_dan' } });
  await run.result();
  const ended = await runtime.start('q', { identity: { ...own, session: 'other', run: 'ended_of_dan' } });
  await ended.result();
  await ended.approve().catch(() => {});
  await ended.result();
  await runtime.session('chat', { identity: own }).send('hello', { id: 'm1' });
  await runtime.schedules.put({ id: 'weekly', query: 'q', cron: '0 8 * * 1', identity: own });
}

/** Ids that there are, by what they are of. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  run: ['run_of_dan', 'run_of_dan', 'ended_of_dan', 'run_of_ana', 'run_of_nobody'],
  session: ['chat', 'chat', 'other', 'talk', 'new'],
  turn: ['run_of_dan', 'ended_of_dan', 'run_of_ana'],
  schedule: ['weekly', 'weekly', 'daily', 'new'],
  stream: ['log'],
  artifact: ['art_0000'],
  key: ['order-17', 'pay:17', 'pay%3A17'],
};
const odd = [
  '%00',
  '%ff',
  '%2e%2e',
  '%2F',
  '..;',
  '%F0%9F%92%A9',
  "'%20OR%201=1--",
  '__proto__',
  'constructor',
  '%ED%A0%80',
  'a'.repeat(600),
];
const id = fc.oneof(
  { weight: 5, arbitrary: fc.nat({ max: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(...odd) },
  { weight: 1, arbitrary: fc.string({ maxLength: 20 }).map(encodeSafely) },
);
const names = [
  'after',
  'limit',
  'waitMs',
  'tasks',
  'overPauses',
  'status',
  'label',
  'since',
  'tenant',
  'user',
  'session',
  'a',
  'b',
  'keepMs',
  'for',
  'key',
  '__proto__',
];
const values = [
  '',
  '0',
  '-1',
  '1',
  '201',
  '1e9',
  '99999999999999999999',
  'true',
  'null',
  'acme',
  'ana',
  'talk',
  'x=y',
  '=',
  '1.1',
  'run_of_ana:1.1',
  '%00',
  '%ff',
  'NaN',
  'run_of_ana',
];
const pairs = fc.array(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...values)), { minLength: 1, maxLength: 3 });
const query = fc.oneof(
  { weight: 5, arbitrary: fc.constant('') },
  { weight: 3, arbitrary: pairs.map((given) => given.map(([name, value]) => `${name}=${value}`).join('&')) },
);
const keys = [
  'query',
  'session',
  'agent',
  'text',
  'inputs',
  'answer',
  'answers',
  'token',
  'kind',
  'type',
  'payload',
  'which',
  'until',
  'limits',
  'context',
  'history',
  'at',
  'singleton',
  'rate',
  'debounce',
  'labels',
  'title',
  'turn',
  'nodes',
  'before',
  'step',
  'result',
  'cron',
  'everyMs',
  'input',
  'busy',
  'id',
  'scopes',
  'identity',
  'priority',
  'undo',
  'author',
  '__proto__',
  'constructor',
  'toString',
];
const begins: readonly object[] = [
  { query: 'q' },
  { query: 'q', context: { args: { a: 1 }, hints: { budget: { steps: 1 } } } },
  { query: 'q', context: { externalMemory: { identity: { tenant: 'acme', user: 'ana' } } } },
  { query: 'q', session: 'talk', singleton: { key: 'k' } },
  { query: 'q', rate: { key: 'k', limit: 1, perMs: 1_000 } },
  { query: 'q', debounce: { key: 'k', waitMs: -1 } },
  { query: 'q', throttle: { key: '', limit: 0, perMs: 'x' } },
  { query: 'q', inputs: [{ data: '!!', mime: 'text/plain' }] },
  { query: 'q', inputs: [{ data: 'AAAA', mime: 'x\r\ny: z' }] },
  { query: 'q', inputs: [{ url: 'http://127.0.0.1:1/' }] },
  { query: 'q', inputs: [{ artifactRef: 'art_0', mime: 'text/plain', sizeBytes: 1 }] },
  { query: 'q', history: [{ role: 'user', content: [{ type: 'image', image: 7 }] }] },
  { query: 'q', history: [{ role: 'tool', parts: [null] }] },
  { query: 'q', limits: { steps: -1 } },
  { query: 'q', limits: { costMicroUsd: 1 } },
  { query: 'q', at: 'yesterday' },
  { query: 'q', at: 8.7e15 },
  { query: 'q', labels: { a: '\u0000' } },
  { query: 'q', undo: { calls: 'x' }, onFail: 'undo' },
  { query: 'q', author: { id: 7 } },
];
const says: readonly object[] = [
  ...[
    { text: 'hello' },
    { text: 'hello', busy: 'interrupt' },
    { text: 'hello', busy: 'reject', id: 'm1' },
    { text: '' },
    {},
  ],
  ...[
    { text: 'x', author: {} },
    { text: 'x', inputs: [{ url: 'file:///etc/passwd' }] },
    { notice: true, text: 'x', until: 'applied' },
  ],
];
const answers: readonly object[] = [
  ...[
    { kind: 'approve' },
    { kind: 'approve', args: 7 },
    { kind: 'approve', digest: 'x' },
    { kind: 'reject', reason: 'no' },
  ],
  ...[
    { kind: 'approve', remember: { scope: 'user', match: 'tool' } },
    { kind: 'approve', remember: { scope: 'x' } },
  ],
  ...[{ kind: 'answer', value: 1 }, { kind: 'answer' }, { kind: 'payload', payload: {} }, { kind: 'payload' }],
  ...[{ kind: 'settle', happened: true }, { kind: 'settle' }],
];
/** Bodies that are nearly right, by the last word of the path. */
const FITTING: Readonly<Record<string, readonly object[]>> = {
  runs: begins,
  messages: says,
  edit: says,
  send: says,
  regenerate: [{}, { busy: 'steer' }, { id: 'm1' }],
  answer: answers.flatMap((answer) => [{ answer }, { answer, token: 'pause_0' }]),
  answers: answers.flatMap((answer) => [
    {
      answers: [
        { run: 'run_of_ana', answer },
        { run: 'run_of_dan', answer },
      ],
    },
    { answers: [{ run: 'ended_of_dan', token: 'x', answer }] },
  ]),
  steer: [
    ...[
      'APPROVE',
      'REJECT',
      'REVOKE',
      'RESUME',
      'ANSWER',
      'SETTLE',
      'INJECT_CONTEXT',
      'USER_MESSAGE',
      'CANCEL_CALL',
      'nothing',
    ].map((type) => ({ type })),
    ...[
      { type: 'PRIORITIZE', payload: { priority: 5 } },
      { type: 'REDIRECT', payload: { goal: 7 } },
      { type: 'PAUSE', payload: { before: 7 } },
    ],
  ],
  'cancel-call': [{ which: { step: 0, call: 0 } }, { which: 'x' }, { which: { step: 9, call: 9 } }],
  fork: [
    {},
    { step: 0 },
    { step: 999 },
    { step: 1, result: { value: 1 } },
    { step: 1, result: { value: 1, call: 9 } },
    { limits: { steps: 0 } },
  ],
  pause: [{}, { before: 7 }, { before: { tool: 'nothing' } }, { clear: true }, { before: 'next' }],
  resume: [{}, { token: 'x' }, { limits: { steps: 'x' } }, { nodes: { a: 7 } }, { until: 'next' }, { payload: {} }],
  retry: [{}, { nodes: ['x'] }],
  cancel: [{}, { hard: false }, { waiting: true }],
  switch: [{ turn: 'run_of_dan' }, { turn: 'run_of_ana' }],
  ':session': [{ title: 'x' }, { title: null }, { title: '' }, { title: 'x'.repeat(201) }],
  ':schedule': [
    ...[{ query: 'q', cron: '0 8 * * *' }, { query: 'q', cron: '* * * *' }, { query: 'q', everyMs: 1 }, { query: 'q' }],
    ...[
      { query: 'q', cron: '0 8 * * *', timezone: 'Nowhere/There' },
      { query: 'q', everyMs: 60_000, session: 'talk', agent: 'x' },
    ],
  ],
  ':key': [{ paid: true }, {}],
};
const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
const body = fc.oneof(
  { weight: 8, arbitrary: fc.nat({ max: 99 }) },
  {
    weight: 3,
    arbitrary: fc
      .dictionary(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 3 }))
      .map((each) => JSON.stringify(each)),
  },
  { weight: 2, arbitrary: fc.json({ maxDepth: 3 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '',
      '{',
      'null',
      '[]',
      '"',
      '{"query":"q"',
      '\u0000',
      '{"query":"\\ud800"}',
      '{"__proto__":{"query":"q"}}',
      `{"query":${deep}}`,
      `{"query":"q","context":{"args":${deep}}}`,
      deep,
    ),
  },
  { weight: 1, arbitrary: fc.constant(undefined) },
);
const header = fc.constantFrom<[string, string]>(
  ['last-event-id', '-1'],
  ['last-event-id', '1.1'],
  ['last-event-id', 'run_of_ana:2.1'],
  ['last-event-id', 'x'.repeat(1_000)],
  ['accept', 'text/event-stream'],
  ['range', 'bytes=0-'],
  ['range', 'bytes=9-1'],
  ['idempotency-key', ''],
  ['idempotency-key', 'x'.repeat(300)],
  ['idempotency-key', 'k'],
  ['content-type', 'text/html'],
  ['webhook-id', 'm1'],
  ['webhook-timestamp', '1'],
  ['webhook-signature', 'v1,AAAA'],
);

export const shots: fc.Arbitrary<Shot> = fc.record({
  route: fc.nat(),
  ids: fc.array(id, { minLength: 3, maxLength: 3 }),
  query,
  body,
  headers: fc.array(header, { maxLength: 3 }).map((pairs) => Object.fromEntries(pairs)),
  who: fc.constantFrom(
    'acme/dan',
    'acme/dan',
    'acme/dan',
    'acme/dan/session_user',
    'acme/eve',
    'acme/eve/session_user',
    'other/mallory',
    'other/mallory/session_user',
    'nobody',
  ),
});

function encodeSafely(text: string): string {
  return encodeURIComponent(text.toWellFormed()) || 'x';
}

function nearly(path: string, which: number): string | undefined {
  const fitting = FITTING[path.split('/').at(-1) ?? ''] ?? [];
  const body = fitting[which % Math.max(1, fitting.length)];
  return body && JSON.stringify(body);
}

/** @returns what is wrong with the answer, if something is. */
export async function shoot({ handler, routes }: Target, shot: Shot): Promise<string | undefined> {
  const route = routes[shot.route % routes.length];
  if (route === undefined) return 'There are no routes.';
  let used = 0;
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => {
    const id = shot.ids[used++] ?? 'x';
    return typeof id === 'string' ? id : (KNOWN[name]?.[id % (KNOWN[name]?.length ?? 1)] ?? 'x');
  });
  const body = typeof shot.body === 'number' ? nearly(route.path, shot.body) : shot.body;
  const hasBody = route.method !== 'GET' && body !== undefined;
  const left = new AbortController();
  const about = `${route.method} ${path}?${shot.query} ${body?.slice(0, 300)} ${JSON.stringify(shot.headers)} ${shot.who}`;
  const request = new Request(`http://localhost${path}${shot.query === '' ? '' : `?${shot.query}`}`, {
    method: route.method,
    headers: { ...shot.headers, authorization: `Bearer ${shot.who}` },
    signal: left.signal,
    ...(hasBody ? { body } : {}),
  });
  const answer = await handler(request);
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
  // A stream may have no end: the reader leaves.
  if (isStream) await answer.body?.cancel();
  const text = isStream ? '' : await answer.text();
  left.abort();
  // An admin stands above tenants.
  if (text.includes(SECRET) && !shot.who.endsWith('admin')) return `It tells of others: ${about}`;
  if (/node_modules|\.ts:\d|\n\s+at /.test(text) && route.path !== '/docs')
    return `It tells how the server is made: ${about} ${text}`;
  if (answer.status < 400 || (route.path === '/readyz' && answer.status === 503)) return undefined;
  if (answer.status >= 500) return `${answer.status}: ${about} ${text}`;
  if (shot.who === 'nobody' && answer.status === 401) return undefined;
  if (answer.status === 416) return undefined;
  const isProblem = answer.headers.get('content-type') === 'application/problem+json';
  return isProblem && /"code":"\w+"/.test(text) ? undefined : `No problem document: ${about} ${text}`;
}
