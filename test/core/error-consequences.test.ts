/** Where each error goes: the table says it, and here each code is brought about to see that it is so. */
import { tmpdir } from 'node:os';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { decodeEntry, ERROR_CONSEQUENCES, type ErrorCode, type ErrorConsequence, PilotageError } from '#core';
import { restateDriver } from '#engine/restate';
import type { Claim, RunRecord } from '#journal';
import { memoryJournal } from '#journal';
import { askModel, readyModel } from '#model';
import {
  type Caller,
  createRuntime,
  type Json,
  LoginRequired,
  local,
  type Planner,
  type Run,
  type Runtime,
  react,
  systemClock,
  type Tool,
  ToolFailure,
} from '#pilotage';
import { plannerRegistry } from '#pilotage/config';
import type { Journal } from '#pilotage/journal';
import type { Decision, RunView } from '#pilotage/planner';
import { deterministic } from '#planners/deterministic';
import { finish } from '#planners/finish';
import { Schedule } from '#runtime';
import { foldEntries } from '#state';
import { scriptedModel, VirtualClock } from '#testing';
import { later, NotSent, OutcomeUnknown, type ToolContext } from '#tools';
import { workspaceTools } from '#tools/workspace';
import { call, script } from '../kit/decisions.ts';
import { type RecordOptions, record, type Script, scripted } from '../kit/recorded.ts';
import { echo, make } from '../kit/tools.ts';
import { FAILING_FLOWS, THROWING_FLOWS } from './flow-errors.ts';
import { FAILING, interrupted, redirected, removed, THROWING } from './plan-errors.ts';

const runtimes: Runtime[] = [];
afterAll(() => Promise.all(runtimes.map((runtime) => runtime.close())));

function runtimeOf(options: Parameters<typeof createRuntime>[0]): Runtime {
  const runtime = createRuntime({ journal: memoryJournal(), ...options });
  runtimes.push(runtime);
  return runtime;
}

function made(name: string, run: Tool['execute'], more: Partial<Tool> = {}): Tool {
  const input = { type: 'object', properties: { n: { type: 'number' } }, additionalProperties: false };
  return { name, description: 'd', inputSchema: input, effect: 'read', retries: 0, execute: run, ...more };
}
const fails = made('fails', () => {
  throw new Error('no');
});
const works = made('works', () => ({ n: 1 }));
const never = made('never', () => new Promise(() => {}));

const parallel = (tools: readonly string[], more: object = {}): Decision => ({
  kind: 'call_parallel',
  branches: tools.map((name) => ({ tool: name, args: {} })),
  ...more,
});

/** The error is thrown to whoever called. */
async function caller(code: ErrorCode, ask: () => unknown): Promise<ErrorConsequence> {
  const error: unknown = await Promise.resolve()
    .then(ask)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  expect(error).toMatchObject({ code });
  return 'caller';
}

/** The error is in the planner's trajectory, and the run goes on to its end. */
async function planner(code: ErrorCode, script: Script, options: RecordOptions = {}): Promise<ErrorConsequence> {
  const { result, entries, views } = await record(script, options);
  expect(result).toMatchObject({ status: 'finished', reason: 'goal', answer: 'done' });
  const steps = views.at(-1)?.trajectory.steps;
  expect(steps).toEqual(foldEntries(entries).steps);
  const codes = steps?.flatMap(({ calls, error }) => [
    error?.code,
    ...calls.map(({ outcome }) => ('error' in outcome ? outcome.error.code : undefined)),
  ]);
  expect(codes).toContain(code);
  return 'planner';
}

/** As `planner`, with time that moves whenever nothing else happens. */
async function plannerInTime(code: ErrorCode, script: Script, tools: readonly Tool[]): Promise<ErrorConsequence> {
  const clock = new VirtualClock();
  let over = false;
  const asked = planner(code, script, { tools, clock, journal: memoryJournal({ clock }) }).finally(() => {
    over = true;
  });
  while (!over) {
    await new Promise(setImmediate);
    clock.advance(500);
  }
  return asked;
}

/** The run ends as failed, with the error. */
async function run(code: ErrorCode, decision: unknown, options: RecordOptions = {}): Promise<ErrorConsequence> {
  const { result } = await record([() => decision as Decision], options);
  expect(result).toMatchObject({ status: 'failed', error: { code } });
  return 'run';
}

/** The store refuses once; the same entries are appended again. */
async function retry(code: ErrorCode): Promise<ErrorConsequence> {
  let refusals = 0;
  const journal = withAppend((append) => {
    refusals += 1;
    if (refusals === 1) throw new PilotageError(code, 'not now');
    return append();
  });
  const { result } = await record([], { journal });
  expect(result.status).toBe('finished');
  expect(refusals).toBe(2);
  return 'retry';
}

function withAppend(around: (append: () => Promise<void>) => Promise<void>): Journal {
  const journal = memoryJournal();
  const append = journal.append.bind(journal);
  journal.append = async (request) => around(async () => append(request));
  return journal;
}

/** The store refuses for good: whoever waits for the run is told. */
function refusedAppend(code: ErrorCode): Promise<ErrorConsequence> {
  const journal = withAppend(() => Promise.reject(new PilotageError(code, 'never')));
  return caller(code, async () => {
    const started = await runtimeOf({ planner: finish(), journal }).start('q', { identity: local('ana') });
    return started.result();
  });
}

async function paused(): Promise<Run> {
  const ask = (): Decision => ({ kind: 'request_pause', reason: 'await_input' });
  const started = await runtimeOf({ planner: ask }).start('q', { identity: local('ana') });
  await started.result();
  return started;
}

async function stored(journal: Journal): Promise<Claim> {
  const identity = local('ana');
  const started = {
    kind: 'started',
    identity,
    query: 'q',
    agent: 'p',
    limits: {},
    scopes: [],
    seq: 1,
    at: 0,
  } as const;
  const claim = { owner: 'o', leaseMs: 60_000 };
  return (await journal.create({ identity, priority: 0, entries: [started], claim })) as Claim;
}

async function appendTo(journal: Journal, fence: number, expected: number): Promise<void> {
  const { run } = await stored(journal);
  const began = { kind: 'call_began', step: 0, call: 0, seq: expected + 1, at: 0 } as const;
  return journal.append({ run, fence, expected, entries: [began] });
}

/** Pauses at a call that waits for an approval, in a tool that may change; the run belongs to ana. */
async function gated(gate: NonNullable<Tool['needsApproval']>): Promise<Run> {
  const tools = [{ ...works, needsApproval: gate }];
  const started = await runtimeOf({ planner: scripted([call('works')]), tools }).start('q', { identity: local('ana') });
  await started.result();
  return started;
}

/** What becomes of a call that waits in the middle of its work. */
async function asked(
  code: ErrorCode,
  execute: (context: ToolContext) => unknown,
  answer?: (run: Run) => Promise<void>,
): Promise<ErrorConsequence> {
  const tools = [{ ...works, execute: (_: object, context: ToolContext) => execute(context) as Json }];
  const run = await runtimeOf({ planner: scripted([call('works')]), tools }).start('q', { identity: local('ana') });
  if (answer !== undefined) {
    await run.result();
    await answer(run);
  }
  expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', answer: 'done' });
  expect((await run.state()).steps[0]?.calls).toMatchObject([{ outcome: { kind: 'error', error: { code } } }]);
  return 'planner';
}

/** What becomes of a call when its approval is given so. */
async function answered(
  code: ErrorCode,
  gate: NonNullable<Tool['needsApproval']>,
  answer: (run: Run) => Promise<void>,
): Promise<ErrorConsequence> {
  const run = await gated(gate);
  if ((await run.state()).ending === null) await answer(run);
  expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', answer: 'done' });
  const kind = code === 'superseded' ? 'skipped' : 'error';
  expect((await run.state()).steps[0]?.calls).toMatchObject([{ outcome: { kind, error: { code } } }]);
  return 'planner';
}

const spawn = (task: 'foreground' | 'background', query: string, groupId?: string): Decision => ({
  kind: 'spawn_task',
  task,
  spec: { description: 'd', query, ...(groupId === undefined ? {} : { seal: true }) },
  ...(groupId === undefined ? {} : { groupId }),
});

/** As `planner`, for a run whose tasks have the query `task` and a script of their own. */
function owner(code: ErrorCode, script: Script, task: Script = []): Promise<ErrorConsequence> {
  const scriptOf = (run: RunView): Decision => {
    const made = (run.query === 'task' ? task : script)[run.trajectory.count];
    if (typeof made === 'function') return made(run) as Decision;
    return (made ?? { kind: 'finish', reason: 'goal', payload: 'done' }) as Decision;
  };
  return planner(code, Array<typeof scriptOf>(30).fill(scriptOf));
}

const from = (path: string): Json => ({ $from: '0', path });
const finished: Decision = { kind: 'finish', reason: 'goal', payload: 'done' };
const endless: Decision = { kind: 'request_pause', reason: 'await_input' };
const tools = [fails, works];
const reuse = (args: Json): Script => [
  {
    kind: 'call_parallel',
    branches: [
      { tool: 'works', args: {} },
      { tool: 'works', args: { n: args } },
    ],
  },
];

/** Runs whose planner cannot go on. */
function failing(): { readonly [C in keyof typeof FAILING]: () => Promise<ErrorConsequence> } {
  const scene = (code: ErrorCode, planner: () => Planner) => async (): Promise<ErrorConsequence> => {
    const started = await runtimeOf({ planner: planner(), tools }).start('q', { identity: local('ana') });
    expect(await started.result()).toMatchObject({ status: 'failed', error: { code } });
    return 'run';
  };
  const scenes = Object.entries(FAILING).map(([code, made]) => [code, scene(code as ErrorCode, made)]);
  return Object.fromEntries(scenes) as ReturnType<typeof failing>;
}

/** What ends the run of a flow, and what whoever called gets thrown. */
function flows(): Readonly<
  Record<keyof typeof FAILING_FLOWS | keyof typeof THROWING_FLOWS, () => Promise<ErrorConsequence>>
> {
  const failing = Object.entries(FAILING_FLOWS).map(([code, result]) => [
    code,
    async () => {
      expect(await result()).toMatchObject({ status: 'failed', error: { code } });
      return 'run';
    },
  ]);
  const throwing = Object.entries(THROWING_FLOWS).map(([code, ask]) => [code, () => caller(code as ErrorCode, ask)]);
  return Object.fromEntries([...failing, ...throwing]) as ReturnType<typeof flows>;
}

/** A run whose first step is over, and whose second call waits for an approval. */
async function waitingForYes(): Promise<Run> {
  const asks = { ...made('asks', () => 'asked'), needsApproval: true };
  const runtime = runtimeOf({ planner: script(call('works'), call('asks')), tools: [works, asks] });
  const started = await runtime.start('q', { identity: local('ana') });
  await started.result();
  return started;
}

const SCENES: { readonly [C in ErrorCode]: () => Promise<ErrorConsequence> } = {
  identity_required: () =>
    caller('identity_required', () => runtimeOf({ planner: finish() }).start('q', { identity: {} as never })),
  invalid_config: () => caller('invalid_config', () => createRuntime({ planner: finish(), limits: { steps: -1 } })),
  price_missing: () =>
    run(
      'price_missing',
      { decision: { kind: 'finish', reason: 'goal' }, usage: { inputTokens: 1 } },
      { limits: { costUsd: 1 } },
    ),
  engine_unavailable: () =>
    caller('engine_unavailable', () => restateDriver({ ingress: 'http://127.0.0.1:1' }).wake('a')),
  no_planner: () => caller('no_planner', () => createRuntime({ planner: {} as never })),
  runtime_closed: () =>
    caller('runtime_closed', async () => {
      const runtime = runtimeOf({ planner: finish() });
      await runtime.close();
      return runtime.start('q', { identity: local('ana') });
    }),
  run_not_found: () => caller('run_not_found', () => runtimeOf({ planner: finish() }).run('nobody').resume()),
  run_ended: () =>
    caller('run_ended', async () => {
      const started = await runtimeOf({ planner: finish() }).start('q', { identity: local('ana') });
      await started.result();
      return started.resume();
    }),
  run_unwound: () =>
    caller('run_unwound', async () => {
      const book = make('book', () => 'booked', { undo: () => ({ tool: 'echo', args: {} }) });
      const planner = ({ trajectory: { count } }: RunView): Decision => {
        if (count === 0) return call('book');
        throw new Error('broken');
      };
      const started = await runtimeOf({ planner, tools: [book, echo], onFail: 'undo' }).start('q', {
        identity: local('ana'),
      });
      await started.result();
      return started.resume();
    }),
  undo_failed: async () => {
    const book = make('book', () => 'booked', {
      undo: () => {
        throw new Error('no idea');
      },
    });
    const planner = scripted([call('book'), { kind: 'finish', reason: 'no_path' }]);
    const runtime = runtimeOf({ planner, tools: [book], onFail: 'undo' });
    const started = await runtime.start('q', { identity: local('ana') });
    // The run goes on to its end.
    expect(await started.result()).toMatchObject({
      metadata: { undo: { undo_failed: [{ error: { code: 'undo_failed' } }] } },
    });
    return 'planner';
  },
  payload_invalid: () => caller('payload_invalid', async () => (await paused()).steer('USER_MESSAGE', { text: 1 })),
  pause_not_found: () => caller('pause_not_found', async () => (await paused()).approve('another')),
  pause_expired: () =>
    caller('pause_expired', async () => {
      const clock = new VirtualClock();
      const ask = scripted([{ kind: 'request_pause', reason: 'await_input', expiresInMs: 1_000 }]);
      const made = runtimeOf({ planner: ask, clock, journal: memoryJournal({ clock }) });
      const started = await made.start('q', { identity: local('ana') });
      await started.result();
      clock.advance(1_000);
      return started.approve();
    }),
  scope_mismatch: () =>
    caller('scope_mismatch', async () => {
      const runtime = runtimeOf({ planner: finish() });
      const identity = local('ana');
      await (await runtime.start('q', { identity })).result();
      return runtime.start('q', { identity: { ...identity, user: 'eve' } });
    }),
  scope_invalid: () =>
    caller('scope_invalid', async () => {
      const { id } = await paused();
      const as = { ...local('ana', { run: id }), scope: 'root' as never };
      return (runtimes.at(-1) as Runtime).run(id, { as }).cancel();
    }),
  approver_refused: () =>
    caller('approver_refused', async () => {
      const { id } = await gated({ approver: 'another' });
      const as: Caller = { ...local('ana'), scope: 'owner_user' };
      return (runtimes.at(-1) as Runtime).run(id, { as }).approve();
    }),
  run_changed: () =>
    caller('run_changed', async () => {
      const journal = memoryJournal();
      const identity = local('ana');
      const ask = scripted([{ kind: 'request_pause', reason: 'await_input' }]);
      const before = createRuntime({ planner: ask, journal });
      await (await before.start('q', { identity })).result();
      await before.close();
      return runtimeOf({ planner: { ...ask, version: '2' }, journal })
        .run(identity.run)
        .resume();
    }),
  idempotency_conflict: () =>
    caller('idempotency_conflict', async () => {
      const { tasks } = runtimeOf({ planner: finish() });
      const identity = local('ana');
      await tasks.spawn('one', { identity, idempotencyKey: 'k' });
      return tasks.spawn('another', { identity, idempotencyKey: 'k' });
    }),
  driver_empty_name: () => caller('driver_empty_name', () => plannerRegistry().register(' ', () => finish())),
  driver_nil_factory: () => caller('driver_nil_factory', () => plannerRegistry().register('p', null as never)),
  driver_duplicate: () =>
    caller('driver_duplicate', () => {
      const registry = plannerRegistry();
      registry.register('p', () => finish());
      registry.register('p', () => finish());
    }),
  driver_unknown: () => caller('driver_unknown', () => plannerRegistry().resolve('nobody')),
  inbox_changed: () =>
    caller('inbox_changed', async () => {
      const journal = memoryJournal();
      const claim = await stored(journal);
      const { run } = claim;
      await journal.signal(run, { id: 'c', type: 'CANCEL' });
      const ending = { kind: 'finished', reason: 'goal', seq: 2, at: 0 } as const;
      return journal.append({ run, fence: claim.fence, expected: 1, entries: [ending], seenSignals: claim.signals });
    }),
  url_refused: () =>
    caller('url_refused', () =>
      runtimeOf({ planner: finish() }).start('q', { inputs: [{ url: 'https://a.example/' }] }),
    ),
  url_failed: () =>
    caller('url_failed', () =>
      // Nothing listens at this port.
      runtimeOf({ planner: finish(), files: { fetch: { allowHosts: ['127.0.0.1'] } } }).start('q', {
        inputs: [{ url: 'http://127.0.0.1:1/' }],
      }),
    ),
  history_failed: () =>
    caller('history_failed', async () => {
      const load = (): never => {
        throw new Error('away');
      };
      const sent = await runtimeOf({ planner: finish(), history: { load } }).session('s').send('q');
      return sent.result();
    }),
  unknown_control_type: () => caller('unknown_control_type', async () => (await paused()).steer('STOP' as never)),
  inbox_full: () =>
    caller('inbox_full', async () => {
      const journal = memoryJournal();
      const { run: id } = await stored(journal);
      for (let index = 0; index <= 256; index += 1) await journal.signal(id, { id: `c${index}`, type: 'PAUSE' });
    }),
  signals_full: () =>
    caller('signals_full', async () => {
      const journal = memoryJournal();
      const about = { tenant: 'local', key: 'order-17', payload: null, keepMs: 60_000 };
      for (let id = 0; id <= 1_000; id += 1) await journal.events.signal({ ...about, id: String(id) });
    }),
  memory_block_unserializable: async () => {
    const runtime = runtimeOf({ planner: finish() });
    const context = { externalMemory: { greet: (() => 'hi') as never } };
    const asked = await caller('memory_block_unserializable', () =>
      runtime.start('q', { identity: local('ana'), context }),
    );
    expect(await runtime.list()).toEqual([]);
    return asked;
  },
  tool_name_empty: () =>
    caller('tool_name_empty', () => createRuntime({ planner: finish(), tools: [{ ...works, name: ' ' }] })),
  tool_without_execute: () =>
    caller('tool_without_execute', () =>
      createRuntime({ planner: finish(), tools: [{ ...works, execute: undefined as never }] }),
    ),
  tool_name_taken: () => caller('tool_name_taken', () => createRuntime({ planner: finish(), tools: [works, works] })),
  tool_schema_invalid: () =>
    caller('tool_schema_invalid', () =>
      createRuntime({ planner: finish(), tools: [{ ...works, inputSchema: { type: 'nothing' } }] }),
    ),
  tool_example_invalid: () =>
    caller('tool_example_invalid', () =>
      createRuntime({ planner: finish(), tools: [{ ...works, examples: [{ args: { m: 1 } }] }] }),
    ),
  unknown_decision_kind: () =>
    caller('unknown_decision_kind', () => decodeEntry('{"v":1,"kind":"moved","decision":{"kind":"teleport"}}', 1)),
  lease_lost: () => caller('lease_lost', () => appendTo(memoryJournal(), 99, 1)),
  entry_refused: () => {
    const settles = vi.spyOn(Schedule.prototype, 'takeSettled');
    settles.mockImplementationOnce(() => Array(2).fill({ call: 0, outcome: { kind: 'value', value: 1 } }));
    const planner = scripted([
      {
        kind: 'call_parallel',
        branches: [
          { tool: 'works', args: {} },
          { tool: 'works', args: {} },
        ],
      },
    ]);
    return caller('entry_refused', async () => {
      const started = await runtimeOf({ planner, tools }).start('q', { identity: local('ana') });
      return started.result();
    });
  },
  journal_conflict: () => caller('journal_conflict', () => appendTo(memoryJournal(), 1, 5)),
  session_changed: () =>
    caller('session_changed', () => {
      const seen = { live: { run: 'another' }, branch: null };
      return memoryJournal().send({ scope: local('ana'), known: { run: 'r', control: 'message_r' }, seen });
    }),
  schedule_changed: () =>
    caller('schedule_changed', async () => {
      const fires = { tenant: 'acme', id: 's', mark: '1', nextAt: null };
      const identity = local('ana');
      const started = {
        kind: 'started',
        identity,
        query: 'q',
        agent: 'a',
        limits: {},
        scopes: [],
        seq: 1,
        at: 0,
      } as const;
      return memoryJournal().create({ identity, priority: 0, entries: [started], fires });
    }),
  schedule_not_found: () =>
    caller('schedule_not_found', () => runtimeOf({ planner: finish() }).schedules.pause('nothing')),
  rate_limited: () =>
    caller('rate_limited', async () => {
      const runtime = runtimeOf({ planner: finish() });
      const rate = { key: 'k', limit: 1, perMs: 60_000 };
      await runtime.start('q', { rate });
      return runtime.start('q', { rate });
    }),
  session_busy: async () => {
    const journal = memoryJournal();
    const { run } = await stored(journal);
    const { identity } = (await journal.get(run)) as RunRecord;
    return caller('session_busy', () => journal.sessions.delete(identity));
  },
  journal_newer: () => caller('journal_newer', () => decodeEntry('{"v":6,"kind":"moved"}', 1)),
  journal_corrupt: () => caller('journal_corrupt', () => foldEntries([])),
  journal_entry_unknown: () => caller('journal_entry_unknown', () => decodeEntry('{"v":1,"kind":"dreamt"}', 1)),
  journal_read_only: () => refusedAppend('journal_read_only'),
  journal_older: () => refusedAppend('journal_older'),
  journal_replaced: () => refusedAppend('journal_replaced'),
  journal_unsynced: () => refusedAppend('journal_unsynced'),
  journal_closed: () =>
    caller('journal_closed', async () => {
      const journal = memoryJournal();
      await journal.close();
      return journal.get('r');
    }),

  invalid_decision: () => run('invalid_decision', { kind: 'call_tool', tool: '', args: {} }),
  parallel_cap_exceeded: () => run('parallel_cap_exceeded', parallel(Array(51).fill('works'))),
  parallel_invalid_join: () => run('parallel_invalid_join', parallel(['works'], { join: { kind: 'n', n: 2 } })),
  planner_failed: () => run('planner_failed', undefined),
  model_refused: async () => {
    const data = { model: 'm', refusal: { category: 'bio', message: 'Not this.' }, usage: { inputTokens: 7 } };
    const planner = {
      name: 'p',
      next: () => Promise.reject(new PilotageError('model_refused', 'It refused.', { data })),
    };
    const started = await runtimeOf({ planner }).start('q', { identity: local('ana') });
    expect(await started.result()).toMatchObject({
      status: 'finished',
      reason: 'refused',
      metadata: { via: 'p', refusal: { model: 'm', category: 'bio', message: 'Not this.' } },
      usage: { inputTokens: 7 },
    });
    return 'run';
  },
  context_window_exceeded: async () => {
    const planner = { name: 'p', next: () => Promise.reject(new PilotageError('context_window_exceeded', 'too long')) };
    const started = await runtimeOf({ planner }).start('q', { identity: local('ana') });
    expect(await started.result()).toMatchObject({ status: 'failed', error: { code: 'context_window_exceeded' } });
    return 'run';
  },

  deterministic_step: async () => {
    const steps = [
      () => {
        throw new Error('no');
      },
    ];
    const started = await runtimeOf({ planner: deterministic({ steps }) }).start('q', { identity: local('ana') });
    expect(await started.result()).toMatchObject({ status: 'failed', error: { code: 'deterministic_step' } });
    return 'run';
  },

  ...failing(),
  ...flows(),
  template_invalid: () => caller('template_invalid', THROWING.template_invalid),
  hddl_invalid: () => caller('hddl_invalid', THROWING.hddl_invalid),
  policy_refused: () => planner('policy_refused', [call('works')], { tools, policy: () => ({ deny: 'not today' }) }),
  plan_interrupted: async () => {
    expect(await interrupted()).toEqual(['plan_interrupted']);
    return 'planner';
  },
  node_removed: async () => {
    expect(await removed()).toEqual(['node_removed']);
    return 'planner';
  },
  plan_redirected: async () => {
    expect(await redirected()).toContain('plan_redirected');
    return 'planner';
  },

  tool_rejected: () => answered('tool_rejected', true, (run) => run.reject()),
  superseded: () => answered('superseded', true, (run) => run.steer('REDIRECT', { goal: 'another' })),
  question_declined: () =>
    asked(
      'question_declined',
      (context) => context.ask({ question: 'Well?' }),
      (run) => run.reject(),
    ),
  question_expired: () => asked('question_expired', (context) => context.ask({ question: 'Well?', expiresInMs: 0 })),
  event_timeout: () => asked('event_timeout', (context) => context.event({ key: 'order-17', timeoutMs: 0 })),
  result_expired: () => asked('result_expired', () => later({ key: 'job-1', expiresInMs: 0 })),
  wait_changed: () => {
    let runs = 0;
    return asked('wait_changed', (context) => {
      runs += 1;
      return context.event({ key: `order-${runs}`, timeoutMs: 0 });
    });
  },
  approval_timeout: () =>
    answered('approval_timeout', { expiresInMs: 0 }, () => Promise.reject(new Error('It should be over by itself.'))),
  approval_failed: () =>
    answered(
      'approval_failed',
      () => {
        throw new Error('no');
      },
      () => Promise.reject(new Error('Nobody should be asked.')),
    ),
  auth_required: () =>
    planner('auth_required', [call('behind_login')], {
      tools: [
        made('behind_login', () => {
          // Nobody can be shown a URL of this length.
          throw new LoginRequired(`https://login.example/${'x'.repeat(5_000)}`);
        }),
      ],
    }),
  effect_held_back: async () => {
    const pay = made('pay', () => 'paid', { effect: 'once' });
    const runtime = runtimeOf({ planner: scripted([call('pay')]), tools: [pay] });
    const first = await runtime.start('q', { identity: local('ana') });
    await first.result();
    const forked = await first.fork({ step: 0 });
    expect(await forked.result()).toMatchObject({ status: 'finished', answer: 'done' });
    const { steps } = await forked.state();
    expect(steps[0]?.calls).toMatchObject([{ outcome: { error: { code: 'effect_held_back' } } }]);
    return 'planner';
  },
  task_not_found: () => owner('task_not_found', [{ kind: 'await_task', taskId: 'nobody' }]),
  task_limit: () => owner('task_limit', Array(17).fill(spawn('background', 'task')), [endless]),
  task_id_taken: () => {
    const journal = memoryJournal();
    const append = journal.append.bind(journal);
    journal.append = async (request) => {
      for (const { identity, ...rest } of request.starts ?? []) {
        await journal.create({ ...rest, identity: { ...identity, tenant: 'another' } });
      }
      return append(request);
    };
    const scriptOf = (run: RunView): Decision =>
      run.trajectory.count === 0 ? (spawn('background', 'task') as Decision) : finished;
    return planner('task_id_taken', [scriptOf, scriptOf], { journal });
  },
  await_timeout: () =>
    owner(
      'await_timeout',
      [spawn('background', 'task'), (run) => ({ kind: 'await_task', taskId: `${run.identity.run}.0.0`, timeoutMs: 0 })],
      [endless],
    ),
  await_cycle: () => owner('await_cycle', [(run) => ({ kind: 'await_task', taskId: run.identity.run })]),
  group_ended: () => owner('group_ended', [spawn('foreground', 'task', 'g'), spawn('foreground', 'task', 'g')]),

  artifact_not_found: () => {
    const journal = memoryJournal();
    journal.artifacts.get = () => Promise.resolve(undefined);
    return planner('artifact_not_found', reuse(from('')), {
      tools: [made('works', () => 'x'.repeat(40_000))],
      journal,
    });
  },
  unserializable: () => planner('unserializable', [call('odd')], { tools: [made('odd', () => new Map())] }),
  parallel_branch_invalid_args: () =>
    planner(
      'parallel_branch_invalid_args',
      [
        {
          kind: 'call_parallel',
          branches: [
            { tool: 'works', args: {} },
            { tool: 'works', args: { n: 'x' } },
          ],
        },
      ],
      { tools },
    ),
  parallel_threshold_unmet: () =>
    planner('parallel_threshold_unmet', [parallel(['works', 'fails'], { join: { kind: 'n', n: 2 } })], { tools }),
  parallel_all_failed: () =>
    planner(
      'parallel_all_failed',
      [parallel(['fails', 'fails'], { join: { kind: 'first_success' }, concurrency: 8 })],
      { tools },
    ),
  branch_not_started: () =>
    planner(
      'branch_not_started',
      [
        {
          kind: 'call_parallel',
          branches: [
            { tool: 'fails', args: {} },
            { tool: 'works', args: {}, after: ['0'] },
          ],
        },
      ],
      { tools },
    ),
  reference_unresolved: () => planner('reference_unresolved', reuse(from('/gone')), { tools }),
  tool_not_found: () => planner('tool_not_found', [call('nobody')], { tools }),
  tool_not_offered: () => planner('tool_not_offered', [{ decision: call('works'), offered: [] }], { tools }),
  tool_invalid_args: () => planner('tool_invalid_args', [call('works', { n: 'x' })], { tools }),
  tool_invalid_output: () =>
    planner('tool_invalid_output', [call('works')], { tools: [{ ...works, outputSchema: { type: 'string' } }] }),
  tool_failed: () => planner('tool_failed', [call('fails')], { tools }),
  tool_timeout: () => planner('tool_timeout', [call('never')], { tools: [{ ...never, timeoutMs: 1 }] }),
  tool_retries_exhausted: () => {
    const flaky = made('flaky', () => {
      throw new ToolFailure('again', { retryable: true });
    });
    return plannerInTime('tool_retries_exhausted', [call('flaky')], [{ ...flaky, retries: 2 }]);
  },
  tool_abandoned: () =>
    plannerInTime(
      'tool_abandoned',
      [parallel(['never', 'works'], { join: { kind: 'first_success' } })],
      [never, works],
    ),
  handle_failed: () => {
    const slow = { name: 'slow', timeoutMs: 1, open: () => new Promise<never>(() => {}), close: () => {} };
    return plannerInTime('handle_failed', [call('works')], [{ ...works, handles: { slow } }]);
  },
  handle_lost: () => {
    let uses = 0;
    const frail = {
      name: 'frail',
      onLost: 'fail' as const,
      open: () => ({}),
      close: () => {},
      isOpen: () => uses++ > 0,
    };
    const used = [call('works'), call('works')];
    return planner('handle_lost', used, { tools: [{ ...works, handles: { frail } }] });
  },
  not_sent: () => {
    const unsent = made('unsent', () => {
      throw new NotSent();
    });
    return planner('not_sent', [call('unsent')], { tools: [unsent] });
  },
  tool_wait_too_long: () => {
    const away = made('away', () => {
      throw new ToolFailure('next year', { retryAfterMs: 365 * 86_400_000 });
    });
    return planner('tool_wait_too_long', [call('away')], { tools: [{ ...away, retries: 1 }] });
  },
  stream_refused: () =>
    planner('stream_refused', [call('streams')], { tools: [made('streams', (_, { stream }) => stream('').write(1))] }),
  call_failed: async () => {
    const runtime = runtimeOf({ planner: finish(), tools: [{ ...fails, background: true }] });
    const started = await runtime.start('q', { identity: local('ana'), agent: 'tool:fails' });
    expect(await started.result()).toMatchObject({ status: 'failed', error: { code: 'call_failed' } });
    return 'run';
  },
  call_not_found: () => caller('call_not_found', async () => (await waitingForYes()).cancelCall({ step: 0, call: 7 })),
  call_ended: () =>
    caller('call_ended', async () => {
      const run = await waitingForYes();
      return run.cancelCall({ step: 0, call: 0 });
    }),
  call_in_doubt: () =>
    caller('call_in_doubt', async () => {
      const lost = made('lost', () => Promise.reject(new OutcomeUnknown()));
      const planner = script(call('lost'));
      const started = await runtimeOf({ planner, tools: [{ ...lost, effect: 'once' }] }).start('q', {
        identity: local('ana'),
      });
      await started.result();
      return started.cancelCall({ step: 0, call: 0 });
    }),
  store_refused: () =>
    planner('store_refused', [call('keeps')], { tools: [made('keeps', (_, { store }) => store.put([], '', 1))] }),
  embedding_failed: () => {
    const down = { index: { embed: () => Promise.reject(new Error('down')) } };
    const finds = made('finds', (_, { store }) => store.search([], 'q'));
    return planner('embedding_failed', [call('finds')], { tools: [finds], store: down });
  },
  outcome_unknown: () =>
    plannerInTime(
      'outcome_unknown',
      [parallel(['never', 'works'], { join: { kind: 'first_success' } })],
      [{ ...never, effect: 'once', inDoubt: 'tell' }, works],
    ),
  budget_exceeded: () =>
    planner('budget_exceeded', [call('dear')], {
      tools: [{ ...works, name: 'dear', costUsd: 0.00001 }],
      limits: { costUsd: 0.000005 },
    }),
  workspace_refused: () =>
    planner('workspace_refused', [call('read_file', { path: '../secret' })], {
      tools: workspaceTools({ root: tmpdir() }),
    }),
  model_unavailable: async () => {
    const down = scriptedModel(() => ({ error: new ToolFailure('no route', { retryable: true }) }));
    const models = [readyModel(down)];
    const { signal } = new AbortController();
    const asked = askModel({ models, requestFor: () => ({ prompt: [] }), signal, clock: systemClock, retries: 0 });
    await expect(asked).rejects.toMatchObject({ code: 'model_unavailable' });
    // The planner that is told so goes on without a model.
    const planner = react({ model: down, retries: 0, fallback: finish({ payload: 'by hand' }) });
    const started = await runtimeOf({ planner }).start('q', { identity: local('ana') });
    expect(await started.result()).toMatchObject({ status: 'finished', reason: 'goal', answer: 'by hand' });
    expect(down.calls).toHaveLength(2);
    return 'planner';
  },
  cancelled: () =>
    planner('cancelled', [parallel(Array(9).fill('works'), { join: { kind: 'first_success' }, concurrency: 8 })], {
      tools,
    }),

  journal_full: () => retry('journal_full'),
  journal_busy: () => retry('journal_busy'),
  journal_unavailable: () => retry('journal_unavailable'),
};

describe('where an error goes', () => {
  it.each(Object.entries(SCENES))('ER-09 %s', async (code, scene) => {
    expect(await scene()).toBe(ERROR_CONSEQUENCES[code as ErrorCode]);
  });
});

describe('what an error says', () => {
  const secret = 'hunter2-the-secret';

  it('ER-04 a tool that is unknown, and one without right, give the same text', async () => {
    const hidden = made('hidden', () => 1, { scopes: ['admin'] });
    const said = async (withHidden: boolean): Promise<unknown> => {
      const { entries } = await record([call('hidden')], { tools: withHidden ? [works, hidden] : [works] });
      return entries.find((entry) => entry.kind === 'call_ended');
    };
    const [unknown, foreign] = [await said(false), await said(true)];
    expect(foreign).toMatchObject({ outcome: { kind: 'error', error: { code: 'tool_not_found' } } });
    expect({ ...(foreign as object), at: 0 }).toEqual({ ...(unknown as object), at: 0 });
  });

  it.each<[string, Script]>([
    ['arguments that do not fit', [call('works', { n: secret })]],
    ['an argument too many, of which only the name is told', [call('works', { m: secret })]],
    ['a result that is not JSON', [call('leaky')]],
    ['a result that does not fit', [call('strict')]],
    ['a branch that does not fit', [{ kind: 'call_parallel', branches: [{ tool: 'works', args: { n: secret } }] }]],
    [
      'an unresolved reference',
      [
        {
          kind: 'call_parallel',
          branches: [
            { tool: 'text', args: {} },
            { tool: 'works', args: { n: from('/x') } },
          ],
        },
      ],
    ],
  ])('ER-07 no argument and no result is in the text of: %s', async (_, script) => {
    const odd = [
      made('leaky', () => ({ password: secret, more: new Map([[secret, secret]]) })),
      made('strict', () => ({ n: secret }), {
        outputSchema: { type: 'object', properties: { n: { type: 'number' } } },
      }),
      made('text', () => secret),
    ];
    const { entries } = await record(script, { tools: [works, ...odd] });
    const errors = entries.flatMap((entry) =>
      entry.kind === 'call_ended' && 'error' in entry.outcome ? [entry.outcome.error] : [],
    );
    expect(errors.length).toBeGreaterThan(0);
    expect(JSON.stringify(errors)).not.toContain(secret);
  });
});
