import { describe, expect, it } from 'vitest';
import type { Entry, EventPayloads } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, type EventType, local, type RunEvent } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';
import { eventsOf, foldEntries } from '#state';
import { VirtualClock } from '#testing';
import { call } from '../kit/decisions.ts';
import { record, type Script } from '../kit/recorded.ts';
import {
  approved,
  approvedByTwo,
  chunks,
  compactedBy,
  compaction,
  events,
  eventsOfPlanner,
  failedOnce,
  failedWith,
  grows,
  hosted,
  late,
  overflows,
  overtaken,
  pause,
  putOff,
  remarked,
  remarks,
  reopened,
  repinned,
  setRight,
  shortens,
  spent,
  startsOver,
  steered,
  streams,
  task,
  tools,
  undone,
  waited,
  watchedTask,
  wentAway,
  writesCall,
} from './event-scenes.ts';

/** A run that emits each type of event: the map has to name every type there is. */
const EMITTERS: { readonly [T in EventType]: () => Promise<readonly RunEvent[]> } = {
  'run.started': () => events([]),
  token: () => eventsOfPlanner(streams),
  'token.reset': () => eventsOfPlanner(startsOver),
  'tool.input': () => eventsOfPlanner(writesCall),
  'planner.decision': () => events([]),
  'planner.files': () => events([{ decision: call('works'), made: [{ bytes: new Uint8Array(3), mime: 'image/png' }] }]),
  'tool.invoked': () => events([call('works')]),
  'tool.completed': () => events([call('works')]),
  'tool.failed': () => events([call('fails')]),
  'tool.skipped': () =>
    events([
      {
        kind: 'call_parallel',
        branches: [
          { tool: 'fails', args: {} },
          { tool: 'works', args: {}, after: ['0'] },
        ],
      },
    ]),
  'handle.opened': reopened,
  'handle.lost': reopened,
  'tool.away': putOff,
  'call.waiting': waited,
  'call.waited': waited,
  'event.passed': waited,
  'tool.spent': spent,
  'tool.late': late,
  'provider.invoked': hosted,
  'provider.completed': hosted,
  'tool.chunk': chunks,
  'tool.approval_requested': () => approved('approve'),
  'tool.approved': () => approved('approve'),
  'tool.rejected': () => approved('reject'),
  'approval.given': approvedByTwo,
  'approval.reminder': approvedByTwo,
  'approval.escalated': approvedByTwo,
  'rule.set': approvedByTwo,
  'rule.applied': approvedByTwo,
  'task.spawned': () => task(),
  'task.paused': () => task(pause()),
  'task.resumed': () => task(pause()),
  'task.completed': () => task(),
  'task.failed': () => task({ kind: 'finish', reason: 'no_path' }),
  'task.cancelled': () => task({ kind: 'finish', reason: 'cancelled' }),
  'task.group_resolved': () => task(),
  'task.progress': watchedTask,
  'planner.no_progress': () => events([call('works'), call('works'), call('works')]),
  'run.repinned': repinned,
  'turn.started': async () => {
    const runtime = createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), journal: memoryJournal() });
    const { turn } = await runtime.session('default', { identity: { tenant: 'local', user: 'ana' } }).send('hello');
    const seen: RunEvent[] = [];
    for await (const event of runtime.run(turn).events()) seen.push(event);
    await runtime.close();
    return seen;
  },
  'run.erased': async () => {
    const journal = memoryJournal();
    const identity = local('ana');
    await record([call('works')], { tools, journal, identity });
    const runtime = createRuntime({ planner: () => pause(), journal });
    await runtime.erase(identity);
    const seen: RunEvent[] = [];
    for await (const event of runtime.run(identity.run).events()) seen.push(event);
    await runtime.close();
    return seen;
  },
  'memory.recalled': () => events([call('works')], { remembers: { recall: 1 } }),
  'planner.last_move': () =>
    events([call('works'), { kind: 'finish', reason: 'goal' }], { limits: { steps: 2, onCeiling: 'answer' } }),
  'undo.started': undone,
  'undo.call': undone,
  'undo.ended': undone,
  'run.paused': () => events([pause()]),
  'control.received': () => steered('USER_MESSAGE'),
  'control.undelivered': overtaken,
  'control.applied': () => steered('USER_MESSAGE'),
  'control.rejected': () => steered('RESUME'),
  'pause.requested': () => events([pause()]),
  'pause.resumed': () => events([pause(0)]),
  'planner.repair_guidance_injected': remarked,
  'planner.repair_exhausted': remarked,
  'planner.action_extra_field_dropped': remarked,
  'planner.reply_repaired': remarked,
  'model.fallback': remarked,
  'model.output_downgraded': remarked,
  'model.usage_refused': remarked,
  'model.warned': remarked,
  'model.sources': remarked,
  'input.unreadable': remarked,
  'plan.retrieved': remarked,
  'plan.try': remarked,
  'plan.verified': remarked,
  'plan.fallback': remarked,
  'planner.remark_dropped': remarked,
  'acme/plan.scored': remarked,
  'plan.grown': () => eventsOfPlanner(grows),
  'tool.held_back': () => events([{ kind: 'call_parallel', branches: [ECHO, ECHO, ECHO], concurrency: 2 }]),
  message: () => eventsOfPlanner(grows),
  'trajectory.compressed': () => compactedBy(compaction),
  'trajectory.compression_failed': () => failedWith('the model is down'),
  'trajectory.shortened': shortens,
  'model.overflowed': overflows,
  'planner.max_steps_exceeded': () => events([call('works')], { limits: { steps: 1 } }),
  'planner.finish': () => events([]),
  'planner.error': () => events([() => null as never]),
  'model.away': wentAway,
  'run.reopened': failedOnce,
  'run.repaired': setRight,
};

const ECHO = { tool: 'works', args: {} };

/** What the payload of each type has to have, beside the optional parts. */
const FIELDS: { readonly [T in EventType]: readonly (keyof EventPayloads[T])[] } = {
  'run.started': ['query', 'agent'],
  token: ['step', 'channel', 'text', 'offset'],
  'token.reset': ['step'],
  'tool.input': ['step', 'callId', 'tool', 'text', 'offset'],
  'planner.decision': ['step', 'decisionKind', 'reasoningChars', 'latencyMs'],
  'planner.files': ['step', 'files'],
  'tool.invoked': ['step', 'call', 'tool', 'args'],
  'tool.completed': ['step', 'call', 'tool', 'outcome', 'latencyMs', 'attempts'],
  'tool.failed': ['step', 'call', 'tool', 'outcome', 'latencyMs', 'attempts'],
  'tool.skipped': ['step', 'call', 'tool', 'outcome', 'latencyMs', 'attempts'],
  'handle.opened': ['step', 'call', 'handle', 'opening'],
  'handle.lost': ['step', 'call', 'handle', 'opening'],
  'tool.away': ['step', 'call', 'tool', 'error', 'attempts', 'retryAt'],
  'call.waiting': ['step', 'call', 'tool', 'waits'],
  'call.waited': ['step', 'call', 'tool', 'wait', 'ended'],
  'event.passed': ['step', 'call', 'key', 'signal', 'error'],
  'tool.spent': ['step', 'call', 'usage'],
  'tool.late': ['step', 'call', 'tool'],
  'provider.invoked': ['step', 'callId', 'tool', 'input'],
  'provider.completed': ['step', 'callId', 'tool', 'output', 'isError'],
  'tool.chunk': ['run', 'step', 'call', 'tool', 'attempt', 'index', 'chunk'],
  'tool.approval_requested': ['step', 'call', 'tool', 'token'],
  'tool.approved': ['step', 'call', 'tool', 'token'],
  'tool.rejected': ['step', 'call', 'tool', 'token'],
  'approval.given': ['token', 'missing'],
  'approval.reminder': ['token', 'times'],
  'approval.escalated': ['token', 'to'],
  'rule.set': ['rule'],
  'rule.applied': ['step', 'call', 'tool', 'verdict', 'rules'],
  'planner.last_move': ['step', 'reason'],
  'undo.started': ['reason', 'until'],
  'undo.call': ['step', 'tool', 'undoes'],
  'undo.ended': ['undone', 'failed', 'left'],
  'task.spawned': ['step', 'call', 'taskId', 'groupId', 'kind', 'description'],
  'task.paused': ['taskId', 'pauses'],
  'task.resumed': ['taskId'],
  'task.completed': ['taskId'],
  'task.failed': ['taskId', 'code'],
  'task.cancelled': ['taskId'],
  'task.group_resolved': ['groupId', 'ownerTaskId', 'finalStatus', 'resolvedAt', 'members'],
  'task.progress': ['taskId', 'status', 'entries'],
  'planner.no_progress': ['step', 'period', 'times'],
  'run.repinned': ['agent'],
  'turn.started': ['query', 'continues', 'messages'],
  'run.erased': ['erasedAt'],
  'memory.recalled': ['items'],
  'run.paused': ['pauses'],
  'control.received': ['control'],
  'control.undelivered': ['control'],
  'control.applied': ['control'],
  'control.rejected': ['control', 'error'],
  'pause.requested': ['token', 'reason'],
  'pause.resumed': ['token', 'reason', 'verdict'],
  'planner.repair_guidance_injected': ['tier', 'counter', 'count'],
  'planner.repair_exhausted': ['attempts', 'consecutiveArgFailures', 'reasons'],
  'planner.action_extra_field_dropped': ['field'],
  'planner.reply_repaired': ['issues'],
  'model.fallback': ['from', 'to', 'error'],
  'model.output_downgraded': ['model', 'from', 'to'],
  'model.usage_refused': ['model', 'why'],
  'model.warned': ['model', 'warnings'],
  'model.sources': ['model', 'sources'],
  'input.unreadable': ['artifactRef'],
  'plan.retrieved': ['documents', 'tokens', 'cut'],
  'plan.try': ['try', 'purpose', 'model', 'template', 'prompt', 'output', 'latencyMs', 'result', 'faults'],
  'plan.verified': ['candidates', 'valid', 'chosen'],
  'plan.fallback': ['because', 'faults'],
  'planner.remark_dropped': ['remark', 'why'],
  'acme/plan.scored': ['data'],
  'plan.grown': ['step', 'nodes', 'done'],
  'tool.held_back': ['step', 'by', 'limit', 'calls'],
  message: ['step', 'call', 'message'],
  'trajectory.compressed': ['stepsBefore', 'stepsAfter', 'tokenEstimate'],
  'trajectory.compression_failed': ['stepsObserved', 'tokenEstimate', 'errorCode', 'errorMessage'],
  'trajectory.shortened': ['step', 'results', 'tokenEstimate'],
  'model.overflowed': ['step', 'model', 'tokens', 'overflow', 'error'],
  'planner.max_steps_exceeded': ['maxSteps', 'stepsObserved'],
  'planner.finish': ['reason'],
  'planner.error': ['error'],
  'model.away': ['step', 'error'],
  'run.reopened': [],
  'run.repaired': ['by', 'problem'],
};

const only = <T extends EventType>(all: readonly RunEvent[], type: T): Extract<RunEvent, { type: T }>[] =>
  all.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);

describe('the types of events', () => {
  it.each(
    Object.keys(EMITTERS) as EventType[],
  )('EV-13 EV-01 EV-02 %s is emitted, with identity, time and its payload', async (type) => {
    const found = only((await EMITTERS[type]?.()) ?? [], type);
    expect(found.length).toBeGreaterThan(0);
    for (const event of found) {
      expect(event.identity).toEqual({
        tenant: 'local',
        user: 'ana',
        session: 'default',
        run: expect.stringMatching(/^run_/),
      });
      expect(event.occurredAt).toBeGreaterThan(Date.UTC(2024));
      expect(Number.isInteger(event.seq)).toBe(true);
      for (const field of FIELDS[type] ?? []) expect(event).toHaveProperty([field]);
      for (const value of Object.values(event)) expect(value).not.toBeUndefined();
    }
  });
});

describe('planner.decision', () => {
  const parallel: Decision = {
    kind: 'call_parallel',
    branches: [
      { tool: 'works', args: {} },
      { tool: 'works', args: {} },
    ],
  };
  const spawn: Decision = { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q' } };

  it.each<[Decision, string]>([
    [call('works'), 'CallTool'],
    [parallel, 'CallParallel'],
    [spawn, 'SpawnTask'],
    [{ kind: 'await_task', taskId: 't' }, 'AwaitTask'],
    [pause(0), 'RequestPause'],
    [{ kind: 'finish', reason: 'goal' }, 'Finish'],
  ])('DV-14 $kind has a name, and a tool only for a single call', async (decision, name) => {
    const [made] = only(await events([decision]), 'planner.decision');
    expect(made).toMatchObject({ step: 0, decisionKind: name });
    expect(made?.tool).toBe(decision.kind === 'call_tool' ? 'works' : undefined);
  });

  it("DV-14 a model's decision of an unknown kind is told as unknown, with the reason it was refused", async () => {
    const bad = { kind: 'dance' } as never;
    const told = only(await events([bad], { modelDriven: true }), 'planner.decision');
    expect(told[0]).toMatchObject({ decisionKind: 'unknown', rejected: { code: 'invalid_decision' } });
    expect(told[1]).toMatchObject({ decisionKind: 'Finish' });
  });

  it('EV-02 counts the code points of the reasoning, and carries it, the text and the usage', async () => {
    const move = { decision: call('works'), reasoning: 'a😀', text: 't', usage: { inputTokens: 1 } };
    const [told] = only(await events([move]), 'planner.decision');
    expect(told).toMatchObject({ reasoningChars: 2, reasoningTrace: 'a😀', text: 't', usage: { inputTokens: 1 } });
    const [plain] = only(await events([call('works')]), 'planner.decision');
    expect(plain?.reasoningChars).toBe(0);
    expect(Object.keys(plain ?? {})).not.toContain('reasoningTrace');
  });

  it('EV-05 has the index of its step and what the planner took', async () => {
    const clock = new VirtualClock();
    const thinks = (): Decision => {
      clock.advance(250);
      return call('works');
    };
    const told = only(
      await events([thinks, call('works')], { clock, journal: memoryJournal({ clock }) }),
      'planner.decision',
    );
    expect(told.map(({ step, latencyMs }) => [step, latencyMs])).toEqual([
      [0, 250],
      [1, 0],
      [2, 0],
    ]);
  });

  it('EV-05 a clock that was set back gives no negative time', () => {
    const first = {
      kind: 'started',
      identity: local('a'),
      query: 'q',
      agent: 'p',
      limits: {},
      scopes: [],
      seq: 1,
      at: 900,
    } as const;
    const moved: Entry = { kind: 'moved', step: 0, decision: call('t'), startedAt: 1_000, seq: 2, at: 700 };
    const ended: Entry = {
      kind: 'call_ended',
      step: 0,
      call: 0,
      outcome: { kind: 'value', value: 1 },
      attempts: 1,
      startedAt: 1_000,
      seq: 3,
      at: 700,
    };
    expect(eventsOf(moved, foldEntries([first]))[0]).toMatchObject({ latencyMs: 0 });
    expect(eventsOf(ended, foldEntries([first, moved]))[0]).toMatchObject({ latencyMs: 0 });
  });

  it.each<[string, () => Promise<readonly RunEvent[]>, number, string]>([
    ['a run that reaches its goal', () => events([call('works'), call('fails')]), 3, 'planner.finish'],
    ['a step limit', () => events([call('works'), call('works')], { limits: { steps: 2 } }), 2, 'planner.finish'],
    ['a deadline', () => events([], { limits: { deadlineAt: 1 } }), 0, 'planner.finish'],
    [
      'a planner that throws',
      () => events([call('works'), () => Promise.reject(new Error('x')) as never]),
      1,
      'planner.error',
    ],
    ['decisions that do not pass', () => events(Array(9).fill(call('')), { modelDriven: true }), 3, 'planner.error'],
  ])('EV-04 one for each answer of the planner, and one ending: %s', async (_, emit, decisions, ending) => {
    const all = await emit();
    expect(only(all, 'planner.decision')).toHaveLength(decisions);
    const endings = all.filter(({ type }) => type === 'planner.finish' || type === 'planner.error');
    expect(endings.map(({ type }) => type)).toEqual([ending]);
    expect(all.at(-1)).toBe(endings[0]);
  });

  it('EV-04 a cancel ends with one planner.finish too', async () => {
    const runtime = createRuntime({ planner: () => pause(), journal: memoryJournal() });
    const run = await runtime.start('q', { identity: local('ana') });
    await run.result();
    await run.cancel({ reason: 'enough' });
    await run.result();
    const all: RunEvent[] = [];
    for await (const event of run.events()) all.push(event);
    await runtime.close();
    expect(all.map(({ type }) => type)).toEqual([
      'run.started',
      'planner.decision',
      'pause.requested',
      'control.received',
      'control.applied',
      'planner.finish',
    ]);
    expect(all.at(-1)).toMatchObject({ reason: 'cancelled', metadata: { reason: 'enough' } });
  });
});

describe('what a planner remarks', () => {
  it('EV-01 EV-02 is told before the decision it led to, in order, with what was remarked and nothing else', async () => {
    const all = await remarked();
    const [decision] = only(all, 'planner.decision');
    const told = all.filter(({ seq }) => seq === decision?.seq);
    expect(told.slice(0, -2).map(({ identity: _, seq: __, occurredAt: ___, ...remark }) => remark)).toEqual(remarks);
    expect(told.slice(-2).map(({ type }) => type)).toEqual(['planner.decision', 'tool.invoked']);
  });
});

describe('a history that was shortened', () => {
  it('CP-03 is told once, with the estimate, and as many steps after as before', async () => {
    expect(only(await compactedBy(compaction), 'trajectory.compressed')).toMatchObject([
      { stepsBefore: 2, stepsAfter: 2, tokenEstimate: 1_250 },
    ]);
  });

  it.each([
    ['summariser_error', 1_250],
    ['empty_summary', 1_250],
    ['estimator_error', 0],
  ] as const)('EV-03 or why not: %s', async (code, tokenEstimate) => {
    const all = await compactedBy({ failure: { code, message: 'no' }, tokenEstimate });
    expect(only(all, 'trajectory.compression_failed')).toMatchObject([
      { stepsObserved: 2, tokenEstimate, errorCode: code, errorMessage: 'no' },
    ]);
    expect(only(all, 'trajectory.compressed')).toEqual([]);
  });

  it.each([
    [255, 255, 'e'],
    [256, 256, 'e'],
    [257, 256, '...'],
    [1_024, 256, '...'],
  ])('CP-08 a message of %i characters is told with %i', async (given, told, ending) => {
    const [failed] = only(await failedWith('e'.repeat(given)), 'trajectory.compression_failed');
    expect(failed?.errorMessage).toHaveLength(told);
    expect(failed?.errorMessage.endsWith(ending)).toBe(true);
    expect(failed?.errorMessage.startsWith('e'.repeat(told - 3))).toBe(true);
  });
});

describe('the other events', () => {
  it('EV-02 planner.max_steps_exceeded has the limit, the steps, and the last tool', async () => {
    const script: Script = [
      call('fails'),
      {
        kind: 'call_parallel',
        branches: [
          { tool: 'fails', args: {} },
          { tool: 'works', args: {} },
        ],
      },
    ];
    const [exceeded] = only(await events(script, { limits: { steps: 2 } }), 'planner.max_steps_exceeded');
    expect(exceeded).toMatchObject({ maxSteps: 2, stepsObserved: 2, lastTool: 'works' });
    const [none] = only(await events([], { limits: { steps: 0 } }), 'planner.max_steps_exceeded');
    expect(none).toMatchObject({ maxSteps: 0, stepsObserved: 0 });
    expect(Object.keys(none ?? {})).not.toContain('lastTool');
  });

  it('TL-07 a call is told when it is decided and when it ends, with its arguments, its outcome and its attempts', async () => {
    const all = await events([{ kind: 'call_tool', tool: 'works', args: { a: 1 }, callId: 'c1' }, call('fails')]);
    expect(only(all, 'tool.invoked')).toMatchObject([
      { step: 0, call: 0, tool: 'works', callId: 'c1', args: { a: 1 } },
      { step: 1, call: 0, tool: 'fails', args: {} },
    ]);
    expect(only(all, 'tool.completed')).toMatchObject([
      { step: 0, call: 0, tool: 'works', outcome: { kind: 'value', value: 1 }, attempts: 1 },
    ]);
    expect(only(all, 'tool.failed')).toMatchObject([
      { step: 1, tool: 'fails', outcome: { error: { code: 'tool_failed' } } },
    ]);
  });

  it('the offsets of tokens count the characters of their channel, so that a gap shows', async () => {
    const tokens = only(await eventsOfPlanner(streams), 'token');
    expect(tokens.map(({ channel, text, offset }) => [channel, text, offset])).toEqual([
      ['reasoning', 'hm', 0],
      ['text', 'Os', 0],
      ['text', 'lo 😀', 2],
      ['text', '!', 7],
    ]);
  });

  it('a reset takes back what was shown of the step: the offsets begin at 0 again', async () => {
    const told = (await eventsOfPlanner(startsOver)).flatMap((event) => {
      if (event.type === 'token') return [[event.channel, event.text, event.offset]];
      return event.type === 'token.reset' ? [['reset', event.step]] : [];
    });
    expect(told).toEqual([
      ['reasoning', 'hm', 0],
      ['text', 'Os', 0],
      ['reset', 0],
      ['text', 'Ber', 0],
      ['text', 'gen', 3],
    ]);
  });

  it('a pause and its answer are told with the reason and the payloads', async () => {
    const all = await events([pause(0)]);
    expect(only(all, 'pause.requested')).toMatchObject([
      { reason: 'approval_required', payload: { what: 'this' }, expiresAt: expect.any(Number) },
    ]);
    expect(only(all, 'pause.resumed')).toMatchObject([{ reason: 'approval_required', verdict: 'timeout' }]);
    expect(all.filter(({ type }) => type.startsWith('tool.'))).toEqual([]);
  });
});

describe('what people and other runs do to a run', () => {
  it('SP-05 a control is told when it is taken, and again with what became of it', async () => {
    const told = async (all: Promise<readonly RunEvent[]>) =>
      (await all).flatMap((event) => ('control' in event ? [[event.type, event.control.type, event.seq]] : []));
    const [received, applied] = await told(steered('USER_MESSAGE'));
    expect([received?.[0], applied?.[0]]).toEqual(['control.received', 'control.applied']);
    expect(received?.[2]).toBe(applied?.[2]);
    expect((await told(steered('RESUME'))).map(([type]) => type)).toEqual(['control.received', 'control.rejected']);
    expect((await told(overtaken())).map(([type]) => type)).toEqual(['control.received', 'control.undelivered']);
  });

  it('a paused stream ends with run.paused and what somebody can answer; it is not there when the run goes on', async () => {
    const all = await events([call('works'), pause()]);
    const [requested] = only(all, 'pause.requested');
    expect(all.at(-1)).toMatchObject({
      type: 'run.paused',
      seq: requested?.seq,
      pauses: [{ token: requested?.token, reason: 'approval_required', payload: { what: 'this' } }],
    });
    expect(only(await task(pause()), 'run.paused')).toEqual([]);
  });

  it.each([
    ['approve', 'tool.approved', 'tool.completed'],
    ['reject', 'tool.rejected', undefined],
  ] as const)('an approval is asked for and answered with the token of its pause: %s', async (answer, type, end) => {
    const all = await approved(answer);
    const [asked] = only(all, 'tool.approval_requested');
    expect(asked).toMatchObject({ step: 0, call: 0, tool: 'gated', payload: { tool: 'gated', args: {} } });
    expect(only(all, 'pause.requested').map(({ token }) => token)).toEqual([asked?.token]);
    expect(only(all, type)).toMatchObject([{ step: 0, call: 0, tool: 'gated', token: asked?.token }]);
    expect(only(all, 'tool.completed').map((event) => event.type)).toEqual(end === undefined ? [] : [end]);
  });

  it('a task is told from its start to its end, with the group it was in', async () => {
    const all = (await task(pause())).filter(({ type }) => type.startsWith('task.'));
    expect(all.map(({ type }) => type)).toEqual([
      'task.spawned',
      'task.paused',
      'task.resumed',
      'task.completed',
      'task.group_resolved',
    ]);
    const [first] = only(all, 'task.spawned');
    expect(first).toMatchObject({ step: 0, call: 0, kind: 'foreground', description: 'the child' });
    const id = first?.taskId;
    expect(only(all, 'task.completed')).toMatchObject([{ taskId: id, result: 'child' }]);
    expect(only(all, 'task.group_resolved')).toMatchObject([
      {
        groupId: first?.groupId,
        finalStatus: 'completed',
        members: [{ taskId: id, status: 'complete', result: 'child' }],
      },
    ]);
    expect(only(await task({ kind: 'finish', reason: 'no_path' }), 'task.failed')).toMatchObject([{ code: 'no_path' }]);
  });

  it('a round of steps that brings nothing new is told with its length and how often it was taken', async () => {
    const all = await events([
      call('works'),
      call('fails'),
      call('works'),
      call('fails'),
      call('works'),
      call('fails'),
    ]);
    expect(only(all, 'planner.no_progress')).toMatchObject([{ step: 6, period: 2, times: 3 }]);
  });
});

describe('reading events again', () => {
  it('EV-14 gives the same events with the same numbers, from the beginning and from any position', async () => {
    const journal = memoryJournal();
    const identity = local('ana');
    const fault = { code: 'empty_reply', message: 'The model said nothing.' };
    const script = [call('works'), pause(0), { decision: call('works'), fault, remarks }, call('fails')];
    const compact = async (run: RunView) => (run.trajectory.count === 3 ? compaction : undefined);
    const { events: live } = await record(script, { tools, journal, identity, compact });
    const reader = createRuntime({ planner: () => pause(), journal });
    const again = async (from?: number): Promise<RunEvent[]> => {
      const seen: RunEvent[] = [];
      for await (const event of reader.run(identity.run).events(from === undefined ? {} : { from })) seen.push(event);
      return seen;
    };
    expect(await again()).toEqual(live);
    const last = live.at(-1)?.seq ?? 0;
    for (let from = 1; from <= last + 1; from += 1) {
      expect(await again(from)).toEqual(live.filter(({ seq }) => seq >= from));
    }
    await reader.close();
  });

  it('EV-14 no fact is told twice: a type has at most one event for a call and a position', async () => {
    const all = await events([
      call('works'),
      { kind: 'call_parallel', branches: Array(5).fill({ tool: 'works', args: {} }) },
    ]);
    const facts = all.map((event) => JSON.stringify([event.type, event.seq, 'call' in event ? event.call : 0]));
    expect(new Set(facts).size).toBe(facts.length);
  });
});
