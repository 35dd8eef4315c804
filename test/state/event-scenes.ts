/** Runs that make the events of each type come about. */
import { setImmediate as turn } from 'node:timers/promises';
import type { CompactionAttempt, Move, Remark, RemarkType } from '#core';
import { memoryJournal } from '#journal';
import {
  type Clock,
  createRuntime,
  local,
  PilotageError,
  type Planner,
  type RunEvent,
  systemClock,
  type Tool,
  ToolFailure,
  tool,
} from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Decision, RunView } from '#pilotage/planner';
import { VirtualClock } from '#testing';
import { call } from '../kit/decisions.ts';
import { type RecordOptions, record, type Script, scripted } from '../kit/recorded.ts';
import { advanceUntil } from '../kit/waiting.ts';

export const fails: Tool = tool({
  name: 'fails',
  description: 'd',
  inputSchema: { type: 'object' },
  retries: 0,
  execute: () => {
    throw new Error('no');
  },
});
export const works: Tool = tool({
  name: 'works',
  description: 'd',
  inputSchema: { type: 'object' },
  effect: 'pure',
  execute: () => 1,
});
export const gated: Tool = tool({ ...works, name: 'gated', needsApproval: true });
export const tools: readonly Tool[] = [fails, works, gated];

export const events = async (script: Script, options: RecordOptions = {}): Promise<readonly RunEvent[]> =>
  (await record(script, { tools, ...options })).events;

export async function eventsOfPlanner(
  planner: Planner,
  more: readonly Tool[] = [],
  journal: Journal = memoryJournal(),
  clock: Clock = systemClock,
): Promise<RunEvent[]> {
  const runtime = createRuntime({ planner, tools: [...tools, ...more], journal, clock });
  const run = await runtime.start('q', { identity: local('ana') });
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

/** Two planner-made pauses: one that expires, and one that stays open. */
export const pause = (expiresInMs?: number): Decision => ({
  kind: 'request_pause',
  reason: 'approval_required',
  payload: { what: 'this' },
  ...(expiresInMs === undefined ? {} : { expiresInMs }),
});

export async function steered(type: 'USER_MESSAGE' | 'RESUME'): Promise<RunEvent[]> {
  const journal = memoryJournal();
  const runtime = createRuntime({ planner: () => pause(), journal });
  const run = await runtime.start('q', { identity: local('ana') });
  await run.result();
  await run.steer(type, { message: 'm', token: 'another' }, { until: 'applied' }).catch(() => {});
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

/** What a run tells when it has ended; a control comes while the planner makes up its mind to finish. */
export async function overtaken(): Promise<RunEvent[]> {
  const journal = memoryJournal();
  const next = async (run: RunView): Promise<Decision> => {
    await journal.signal(run.identity.run, { id: 'late', type: 'USER_MESSAGE', payload: { message: 'm' } });
    return { kind: 'finish', reason: 'goal' };
  };
  return eventsOfPlanner({ name: 'p', next }, [], journal);
}

/** A run and its tasks, told of the run: each query has a script. */
async function tree(scripts: Readonly<Record<string, Script>>): Promise<RunEvent[]> {
  const planner: Planner = {
    name: 'tree',
    next: (run) => {
      const made = scripts[run.query]?.[run.trajectory.count] ?? { kind: 'finish', reason: 'goal', payload: run.query };
      return typeof made === 'function' ? made(run) : made;
    },
  };
  const runtime = createRuntime({ planner, tools, journal: memoryJournal() });
  const run = await runtime.start('root', { identity: local('ana') });
  const answered = new Set<string>();
  for (let result = await run.result(); result.status === 'paused'; result = await run.result()) {
    await turn();
    for (const { token } of result.pauses.filter((one) => !answered.has(one.token))) {
      answered.add(token);
      await run.approve(token);
    }
  }
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}
export const spawned = (query: string): Decision => ({
  kind: 'spawn_task',
  task: 'foreground',
  spec: { description: `the ${query}`, query },
});
/** A run whose one task ends so. */
export const task = (...script: Script): Promise<RunEvent[]> => tree({ root: [spawned('child')], child: script });

/** A call that waits for an approval, and gets this answer. */
export async function approved(answer: 'approve' | 'reject'): Promise<RunEvent[]> {
  const runtime = createRuntime({ planner: scripted([call('gated')]), tools, journal: memoryJournal() });
  const run = await runtime.start('q', { identity: local('ana') });
  await run.result();
  await run[answer]();
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

/** A call that two people have to approve, late; both have it remembered, and the next one is made without them. */
export async function approvedByTwo(): Promise<RunEvent[]> {
  const clock = new VirtualClock();
  const needsApproval = { approvals: 2, remindAfterMs: 1_000, escalate: { afterMs: 1_000, to: 'managers' } } as const;
  const slow = tool({ ...works, name: 'slow', needsApproval });
  const planner = scripted([call('slow'), call('slow')]);
  const runtime = createRuntime({ planner, tools: [slow], journal: memoryJournal({ clock }), clock });
  runtime.work();
  const run = await runtime.start('q', { identity: local('ana') });
  await run.result();
  await advanceUntil(clock, async () => (await run.state()).pauses[0]?.escalatedAt !== undefined);
  for (const user of ['bea', 'cem']) {
    const as = { tenant: 'local', user, session: 'office', scope: 'admin' } as const;
    await runtime.run(run.id, { as }).approve(undefined, { remember: { scope: 'run' } });
  }
  await run.result();
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

/** A run that waits, and goes on in another version of its planner. */
export async function repinned(): Promise<RunEvent[]> {
  const journal = memoryJournal();
  const identity = local('ana');
  const planner = scripted([pause()]);
  const first = createRuntime({ planner, journal });
  await (await first.start('q', { identity })).result();
  await first.close();
  const second = createRuntime({ planner: { ...planner, version: '2' }, journal });
  await second.run(identity.run).resume({ acceptChanges: true });
  const seen: RunEvent[] = [];
  for await (const event of second.run(identity.run).events()) seen.push(event);
  await second.close();
  return seen;
}

/** What passes by while a run waits for its task, which moves once a second. */
export async function watchedTask(): Promise<RunEvent[]> {
  const clock = new VirtualClock();
  const next = (run: RunView): Decision => {
    if (run.query === 'q') return run.trajectory.count === 0 ? spawned('child') : { kind: 'finish', reason: 'goal' };
    return run.trajectory.count === 0 ? call('slow') : { kind: 'finish', reason: 'goal' };
  };
  const slow = tool({
    ...works,
    name: 'slow',
    execute: () => new Promise((resolve) => clock.after(3_000, () => resolve(1))),
  });
  const planner: Planner = { name: 'hybrid', wakeMode: 'hybrid', next };
  let over = false;
  const seen = eventsOfPlanner(planner, [slow], memoryJournal({ clock }), clock).finally(() => {
    over = true;
  });
  while (!over) {
    await turn();
    clock.advance(100);
  }
  return seen;
}

const says = tool({
  ...works,
  name: 'says',
  execute: (_, { emit }) => {
    emit('Os');
    emit({ city: 'Oslo' });
    return 'Oslo';
  },
});
export const chunks = (): Promise<RunEvent[]> =>
  eventsOfPlanner(
    {
      name: 'p',
      next: ({ trajectory: { count } }) => (count === 0 ? call('says') : { kind: 'finish', reason: 'goal' }),
    },
    [says],
  );

export async function late(): Promise<RunEvent[]> {
  let land = (_: number): void => {};
  const slow = tool({
    name: 'slow',
    description: 'd',
    inputSchema: { type: 'object' },
    effect: 'read',
    retries: 0,
    timeoutMs: 1,
    execute: () =>
      new Promise<number>((resolve) => {
        land = resolve;
      }),
  });
  const next = async (count: number): Promise<Decision> => {
    if (count === 0) return call('slow');
    land(7);
    await turn();
    return { kind: 'finish', reason: 'goal' };
  };
  return eventsOfPlanner({ name: 'p', next: (run) => next(run.trajectory.count) }, [slow]);
}

export const streams: Planner = {
  name: 'streams',
  async *next() {
    yield { type: 'reasoning', text: 'hm' };
    yield { type: 'text', text: 'Os' };
    yield { type: 'text', text: 'lo 😀' };
    yield { type: 'text', text: '!' };
    return { kind: 'finish', reason: 'goal', payload: 'Oslo' };
  },
};

/** Fails before its answer is whole, and begins anew. */
export const startsOver: Planner = {
  name: 'starts over',
  async *next() {
    yield { type: 'reasoning', text: 'hm' };
    yield { type: 'text', text: 'Os' };
    yield { type: 'reset' };
    yield { type: 'text', text: 'Ber' };
    yield { type: 'text', text: 'gen' };
    return { decision: { kind: 'finish', reason: 'goal', payload: 'Bergen' }, text: 'Bergen' };
  },
};

/** Writes the arguments of a call on the way to it. */
export const writesCall: Planner = {
  name: 'writes a call',
  async *next({ trajectory }) {
    if (trajectory.count > 0) return { kind: 'finish', reason: 'goal', payload: 'done' };
    yield { type: 'input', callId: 'c1', tool: 'works', text: '' };
    yield { type: 'input', callId: 'c1', tool: 'works', text: '{}' };
    return { kind: 'call_tool', tool: 'works', args: {}, callId: 'c1' };
  },
};

/** A plan of which the end is made while its beginning is carried out. */
export const grows: Planner = {
  name: 'grows',
  async *next(run) {
    if (run.trajectory.count > 0) return { kind: 'finish', reason: 'goal' };
    const first = { id: 'a', tool: 'works', args: {} };
    const second = { id: 'b', tool: '_message', args: 'done', after: ['a'] };
    yield { type: 'branches', plan: 'p', branches: [first] };
    return { kind: 'call_parallel', plan: 'p', branches: [first, second], onInvalid: 'per_branch' };
  },
};

/** A handle that is not open any more when the second call needs it. */
export function reopened(): Promise<readonly RunEvent[]> {
  const page = { name: 'page', open: () => ({}), close: () => {}, isOpen: () => false };
  const uses: Tool = { ...works, name: 'uses', handles: { page } };
  return events([call('uses'), call('uses')], { tools: [uses] });
}

/** One of each remark that a planner can make. */
const REMARKS: { readonly [T in RemarkType]: Remark<T> } = {
  'planner.repair_guidance_injected': {
    type: 'planner.repair_guidance_injected',
    tier: 'warning',
    counter: 'args',
    count: 2,
  },
  'planner.repair_exhausted': {
    type: 'planner.repair_exhausted',
    attempts: 3,
    consecutiveArgFailures: 2,
    reasons: ['no JSON', 'no JSON', 'cut off'],
  },
  'planner.action_extra_field_dropped': { type: 'planner.action_extra_field_dropped', field: 'thought' },
  'planner.reply_repaired': {
    type: 'planner.reply_repaired',
    issues: [{ code: 'single_quotes', message: 'Quotes were changed.' }],
  },
  'model.fallback': { type: 'model.fallback', from: 'a', to: 'b', error: { code: 'http_503', message: 'busy' } },
  'model.output_downgraded': { type: 'model.output_downgraded', model: 'a', from: 'json_schema', to: 'json_object' },
  'model.usage_refused': { type: 'model.usage_refused', model: 'a', why: 'inputTokens is -1' },
  'model.sources': {
    type: 'model.sources',
    model: 'a',
    sources: [{ type: 'url', url: 'https://a.test/', title: 'A' }],
  },
  'model.warned': { type: 'model.warned', model: 'a', warnings: ['unsupported: topK'] },
  'input.unreadable': { type: 'input.unreadable', artifactRef: 'art_1', fileName: 'plan.pdf' },
  'plan.retrieved': { type: 'plan.retrieved', documents: 3, tokens: 900, cut: 1 },
  'plan.try': {
    type: 'plan.try',
    try: 2,
    previous: 1,
    purpose: 'repair',
    model: 'a',
    template: { id: 'plan', version: 1 },
    prompt: '[]',
    output: '{}',
    latencyMs: 10,
    result: 'invalid',
    faults: [{ code: 'plan_empty', message: 'The plan has no steps.' }],
  },
  'plan.verified': { type: 'plan.verified', candidates: 3, valid: 2, chosen: 2, scores: [0.2, 0.9] },
  'plan.fallback': { type: 'plan.fallback', because: 'exhausted', faults: [], planner: 'rules' },
  'planner.remark_dropped': { type: 'planner.remark_dropped', remark: 'scored', why: 'It has no name with a slash.' },
  'acme/plan.scored': { type: 'acme/plan.scored', data: { score: 0.7 } },
};
export const remarks: readonly Remark[] = Object.values(REMARKS);
export const remarked = (): Promise<readonly RunEvent[]> => events([{ decision: call('works'), remarks }]);

/** A run whose model's provider has searched by itself. */
export const hosted = (): Promise<readonly RunEvent[]> => {
  const act = { toolCallId: 'srv_1', toolName: 'web_search' };
  const parts = [
    { type: 'tool-call', ...act, input: { query: 'sun' }, providerExecuted: true },
    { type: 'tool-result', ...act, output: { type: 'json', value: [] } },
  ];
  return events([{ decision: call('works'), providerState: { provider: 'p', parts } }]);
};

export const compaction: CompactionAttempt = {
  compaction: {
    summary: { goals: ['g'], facts: [], pending: [], lastOutputDigest: '', note: '' },
    before: 1,
    tokenEstimate: 1_250,
  },
};
export const compactedBy = (attempt: CompactionAttempt): Promise<readonly RunEvent[]> =>
  events([call('works'), call('works')], {
    compact: async (run) => (run.trajectory.count === 2 ? attempt : undefined),
  });
export const failedWith = (message: string): Promise<readonly RunEvent[]> =>
  compactedBy({ failure: { code: 'summariser_error', message }, tokenEstimate: 1_250 });

/** A run whose last result is too large. */
export const shortens = (): Promise<readonly RunEvent[]> =>
  events([call('works')], {
    compact: async ({ trajectory }) => {
      const outcome = trajectory.count === 1 ? trajectory.step(0)?.calls[0]?.outcome : undefined;
      const isWhole = outcome?.kind === 'value' && outcome.artifact === undefined;
      return isWhole ? { shorten: { calls: [0], bytes: 200 }, tokenEstimate: 9 } : undefined;
    },
  });

/** A run whose first request does not fit. */
export function overflows(): Promise<RunEvent[]> {
  const data = { model: 'm', tokens: 9, overflow: { kind: 'input' } };
  const fault = { code: 'context_window_exceeded', message: 'too long', data };
  const finish = { kind: 'finish', reason: 'goal' } as const;
  const next = ({ trajectory }: RunView): Move =>
    trajectory.contextLimits === undefined ? { decision: finish, fault } : { decision: finish };
  return eventsOfPlanner({ name: 'p', next });
}

/** A run whose model cannot be asked. */
export function wentAway(): Promise<RunEvent[]> {
  const next = (): never => {
    throw new PilotageError('model_unavailable', 'no key', { data: { why: 'key_refused' } });
  };
  return eventsOfPlanner({ name: 'p', next });
}

/** A call that says what it has used. */
export async function spent(): Promise<RunEvent[]> {
  const tells = tool({ ...works, name: 'tells', execute: (_, context) => context.spent({ tokens: 5 }) });
  const runtime = createRuntime({ planner: scripted([call('tells')]), tools: [tells], journal: memoryJournal() });
  const run = await runtime.start('q', { identity: local('ana') });
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

/** A call that waits for a time that is over, in a run that a signal comes for which nothing waits for. */
export async function waited(): Promise<RunEvent[]> {
  const asks = tool({
    ...works,
    name: 'asks',
    execute: async (_, context) => {
      await context.sleep({ forMs: 0 });
      return context.ask({ question: 'Well?' });
    },
  });
  const journal = memoryJournal();
  const runtime = createRuntime({ planner: scripted([call('asks')]), tools: [asks], journal });
  const run = await runtime.start('q', { identity: local('ana') });
  await run.result();
  const at = { step: 0, call: 0, wait: 1 };
  await journal.signal(run.id, { id: 'event:1', type: 'EVENT', at, key: 'order-17', payload: null, signal: '1' });
  await run.answer(undefined, { kind: 'answer', value: 'yes' });
  await run.result();
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

/** A call that is put off for a minute, in a run that nobody waits for. */
export async function putOff(): Promise<RunEvent[]> {
  const execute = (): never => {
    throw new ToolFailure('busy', { retryAfterMs: 60_000 });
  };
  const busy = tool({ ...works, name: 'busy', execute });
  const runtime = createRuntime({ planner: scripted([call('busy')]), tools: [busy], journal: memoryJournal() });
  const run = await runtime.start('q', { identity: local('ana') });
  const seen: RunEvent[] = [];
  for await (const event of run.events()) {
    seen.push(event);
    if (event.type === 'tool.away') await run.cancel();
  }
  await runtime.close();
  return seen;
}

/** A run that fails, and is resumed. */
export async function setRight(): Promise<RunEvent[]> {
  const journal = memoryJournal();
  const runtime = createRuntime({ planner: { name: 'p', next: () => ({ kind: 'finish', reason: 'goal' }) }, journal });
  const run = await runtime.start('q', { identity: local('ana') });
  await run.result();
  const { head, fence } = { head: (await run.state()).head, fence: 1 };
  const after = { kind: 'no_progress', step: 1, period: 1, times: 1, seq: head + 1, at: 1 } as const;
  await journal.append({ run: run.id, fence, expected: head, entries: [after] });
  await run.repair({ by: 'ana' });
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

export async function failedOnce(): Promise<RunEvent[]> {
  let failures = 0;
  const next = (): Decision => {
    failures += 1;
    if (failures === 1) throw new Error('once');
    return { kind: 'finish', reason: 'goal' };
  };
  const runtime = createRuntime({ planner: { name: 'p', next }, journal: memoryJournal() });
  const run = await runtime.start('q', { identity: local('ana') });
  await run.result();
  await run.resume();
  await run.result();
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}

/** A run that sees no way, and undoes its call. */
export async function undone(): Promise<RunEvent[]> {
  const made = tool({ ...works, name: 'made', undo: () => ({ tool: 'works', args: {} }) });
  const planner = scripted([call('made'), { kind: 'finish', reason: 'no_path' }]);
  const runtime = createRuntime({ planner, tools: [works, made], journal: memoryJournal(), onFail: 'undo' });
  const run = await runtime.start('q', { identity: local('ana') });
  const seen: RunEvent[] = [];
  for await (const event of run.events()) seen.push(event);
  await runtime.close();
  return seen;
}
