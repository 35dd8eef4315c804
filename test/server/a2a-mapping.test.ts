/** What becomes of a run on the wire of A2A, by the real client over both bindings: the rules of the mapping, one by one. */
import { type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { describe, expect, it } from 'vitest';
import type { Decision, Delta, Json, Move, RunView } from '#core';
import { webhooks } from '#server';
import { type AgentOptions, agent, LoginRequired } from '#tools';
import { asks, call, finish, parallel, pause, script } from '../kit/decisions.ts';
import { spawns } from '../kit/tasks.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import type { WorldOptions } from '../kit/world.ts';
import {
  answerOf,
  asked,
  BINDINGS,
  type BindingName,
  clientAt,
  data,
  Reader,
  said,
  sendFor,
  servedAgent,
  wordsOf,
} from './a2a-kit.ts';
import { receiver } from './receiver.ts';

const stateOf = (task: Pick<Task, 'status'> | undefined) =>
  TaskState[task?.status?.state ?? TaskState.UNRECOGNIZED]?.replace('TASK_STATE_', '');
const asksOf = (task: Task) => [stateOf(task), wordsOf(task.status?.message?.parts)];
const get = (client: Client, id: string) => client.getTask({ tenant: '', id, historyLength: undefined });
const subscribed = (client: Client, id: string) => client.resubscribeTask({ tenant: '', id });

/** An agent behind A2A, and its client. */
async function served(binding: BindingName, options: Partial<AgentOptions>, more: Partial<WorldOptions> = {}) {
  const own = agent({ name: 'own', tools: [], ...options } as AgentOptions);
  const made = await servedAgent({ world: { agents: [own], ...more } });
  return { ...made, client: await clientAt(made.url, binding) };
}

type Payload = NonNullable<StreamResponse['payload']>;

/** The events of a stream, as many as have come. */
function reading(stream: AsyncIterable<StreamResponse>) {
  const events: Payload[] = [];
  const read = async () => {
    for await (const { payload } of stream) if (payload) events.push(payload);
    return events;
  };
  return { events, end: read() };
}

/** The pieces of the answer as they came: `+` before what is appended. */
function pieces(events: readonly Payload[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.$case !== 'artifactUpdate') return [];
    return `${event.value.append ? '+' : ''}${wordsOf(event.value.artifact?.parts)}`;
  });
}

describe.each(BINDINGS)('the mapping of A2A over %s', (binding) => {
  it('task = run, contextId = session', async () => {
    const { client, runtime } = await served(binding, { planner: script(finish('done')) });
    const task = await sendFor(client, said('do it', { contextId: 'the-session' }));
    const { identity } = await runtime.run(task.id).record();
    expect([identity.run, identity.session]).toEqual([task.id, 'the-session']);
    expect(task.contextId).toBe('the-session');
  });

  it('run.started: the first event is a Task, SUBMITTED, then WORKING', async () => {
    const { client } = await served(binding, {
      planner: (run: RunView): Decision =>
        run.query === 'wait' && run.trajectory.count === 0 ? pause : finish('done'),
    });
    const first = await sendFor(client, said('wait'));
    const queued = await sendFor(client, said('next', { contextId: first.contextId }), { returnImmediately: true });
    expect(stateOf(queued)).toBe('SUBMITTED');
    const reader = reading(subscribed(client, queued.id));
    await until(() => reader.events.length > 0);
    await sendFor(client, said('approve', { taskId: first.id }));
    const states = (await reader.end).flatMap((event) =>
      event.$case === 'task' || event.$case === 'statusUpdate' ? [stateOf(event.value)] : [],
    );
    expect(reader.events[0]?.$case).toBe('task');
    expect(states).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
  });

  it('token and answer: artifactUpdate that appends to one artifact; token.reset: artifactUpdate with append false', async () => {
    const steps = [gate(), gate(), gate()] as const;
    const { client } = await served(binding, {
      planner: {
        name: 'speaks',
        async *next(): AsyncGenerator<Delta, Move> {
          await steps[0].opened;
          yield { type: 'text', text: 'wrong' };
          yield { type: 'text', text: ' words' };
          await steps[1].opened;
          yield { type: 'reset' };
          yield { type: 'text', text: 'right' };
          await steps[2].opened;
          yield { type: 'text', text: ' ones' };
          return { decision: finish('right ones'), text: 'right ones' };
        },
      },
    });
    const reader = reading(client.sendMessageStream(asked(said('speak'))));
    await until(() => reader.events.length > 0);
    steps[0].open();
    await until(() => pieces(reader.events).join('').replaceAll('+', '') === 'wrong words');
    steps[1].open();
    await until(() => pieces(reader.events).at(-1) === 'right');
    steps[2].open();
    const events = await reader.end;
    const afterReset = pieces(events).slice(pieces(events).indexOf(''));
    expect(afterReset).toEqual(['', 'right', '+ ones']);
    const ids = events.flatMap((event) => (event.$case === 'artifactUpdate' ? [event.value.artifact?.artifactId] : []));
    expect(new Set(ids).size).toBe(1);
  });

  it('pause: INPUT_REQUIRED with status.message saying what, and the stream ends', async () => {
    const book = make('book', () => 'booked', { needsApproval: true });
    const { client } = await served(binding, { planner: script(call('book', { seat: 3 })), tools: [book] });
    const reader = await new Reader().read(client.sendMessageStream(asked(said('book it'))));
    expect(reader.states.at(-1)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const task = await get(client, reader.task?.id ?? '');
    expect(asksOf(task)).toEqual([
      'INPUT_REQUIRED',
      expect.stringMatching(/May book be called with {"seat":3}.*approve/),
    ]);
  });

  it('pause that is a login: AUTH_REQUIRED with the address; "approve" makes the call again', async () => {
    let isOpen = false;
    const calendar = make('calendar', () => {
      if (isOpen) return 'three meetings';
      throw new LoginRequired('https://login.example/a', { message: 'Calendar access' });
    });
    const { client } = await served(binding, { planner: script(call('calendar')), tools: [calendar] });
    const task = await sendFor(client, said('look'));
    expect(asksOf(task)).toEqual(['AUTH_REQUIRED', expect.stringContaining('https://login.example/a')]);
    isOpen = true;
    expect(stateOf(await sendFor(client, said('approve', { taskId: task.id })))).toBe('COMPLETED');
  });

  it("pause that is not a tool call: the planner's own, an operator's and a limit's are INPUT_REQUIRED, in words of their own", async () => {
    for (const [decision, words] of [
      [asks, /Answer with words/],
      [pause, /approve/],
    ] as const) {
      const { client } = await served(binding, { planner: script(decision) });
      const task = await sendFor(client, said('go'));
      expect(asksOf(task)).toEqual(['INPUT_REQUIRED', expect.stringMatching(words)]);
      expect(stateOf(await sendFor(client, said('approve', { taskId: task.id })))).toBe('COMPLETED');
    }
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const form = await served(binding, { planner: script({ ...asks, schema } as Decision) });
    expect(asksOf(await sendFor(form.client, said('go')))).toEqual([
      'INPUT_REQUIRED',
      expect.stringContaining(`Answer with a data part that fits ${JSON.stringify(schema)}`),
    ]);
    const { opened, open } = gate();
    const tools = [make('hold', () => opened.then(() => 'held'))];
    const held = await served(binding, { planner: script(call('hold'), call('hold')), tools });
    const task = await sendFor(held.client, said('go'), { returnImmediately: true });
    const run = held.runtime.run(task.id);
    await run.pause();
    open();
    await until(async () => (await run.record()).status === 'paused');
    expect(stateOf(await get(held.client, task.id))).toBe('INPUT_REQUIRED');
    expect(stateOf(await sendFor(held.client, said('approve', { taskId: task.id })))).toBe('COMPLETED');
    const limits = { calls: 1, onCeiling: 'pause' } as const;
    const short = await served(binding, { planner: script(call('hold'), call('hold')), tools }, { limits });
    const stands = await sendFor(short.client, said('go'));
    expect(asksOf(stands)).toEqual(['INPUT_REQUIRED', expect.stringContaining('its limit of calls, which is 1')]);
    // Nobody raises it by a message.
    const still = await sendFor(short.client, said('approve', { taskId: stands.id }));
    expect(asksOf(still)).toEqual(['INPUT_REQUIRED', expect.stringContaining('no answer')]);
    await short.runtime.run(stands.id).resume({ limits: { calls: 2 } });
    await until(async () => stateOf(await get(short.client, stands.id)) === 'COMPLETED');
  });

  it('finish: COMPLETED; error: FAILED; cancel: CANCELED; refusal, of a model or by the policy: REJECTED', async () => {
    const ends = async (planner: AgentOptions['planner'], more: Partial<WorldOptions> = {}) => {
      const tools = [make('hold', () => 'held')];
      const { client } = await served(binding, { planner, tools }, more);
      return stateOf(await sendFor(client, said('go')));
    };
    const policy = () => ({ deny: 'not today' });
    const noPath: Decision = { kind: 'finish', reason: 'no_path' };
    expect(await ends(script(finish('done')))).toBe('COMPLETED');
    expect(await ends(() => Promise.reject(new Error('broken')))).toBe('FAILED');
    expect(await ends(script(noPath))).toBe('FAILED');
    expect(await ends(script({ kind: 'finish', reason: 'cancelled' }))).toBe('CANCELED');
    expect(await ends(script({ kind: 'finish', reason: 'refused' }))).toBe('REJECTED');
    expect(await ends(script(call('hold'), noPath), { policy })).toBe('REJECTED');
    // Who finds another way has not refused.
    expect(await ends(script(call('hold'), finish('done')), { policy })).toBe('COMPLETED');
  });

  it('keeps what a task has said that fails or is cancelled: in the stream, and in GetTask', async () => {
    for (const end of ['fails', 'is cancelled']) {
      const { client } = await served(binding, {
        planner: {
          name: 'speaks',
          async *next(_run: RunView, signal: AbortSignal): AsyncGenerator<Delta, Move> {
            yield { type: 'text', text: 'So far' };
            yield { type: 'text', text: ' so good.' };
            if (end === 'fails') throw new Error('broken');
            return new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new Error('aborted')));
            });
          },
        },
      });
      const reader = reading(client.sendMessageStream(asked(said('speak'))));
      await until(() => pieces(reader.events).join('').replaceAll('+', '') === 'So far so good.');
      const [first] = reader.events;
      const id = first?.$case === 'task' ? first.value.id : '';
      if (end !== 'fails') {
        const cancelled = await client.cancelTask({ tenant: '', id, metadata: undefined });
        expect([stateOf(cancelled), answerOf(cancelled)]).toEqual(['CANCELED', 'So far so good.']);
      }
      expect(
        pieces(await reader.end)
          .join('')
          .replaceAll('+', ''),
      ).toBe('So far so good.');
      expect(answerOf(await get(client, id))).toBe('So far so good.');
    }
  });

  it("a run's tasks: referenceTaskIds of the status, also at the end; what they ask is asked by their task", async () => {
    const { client } = await served(binding, {
      planner: (run: RunView): Decision => {
        const isFirst = run.trajectory.count === 0;
        if (run.query === 'below') return isFirst ? asks : finish('below is done');
        return isFirst ? spawns('below', { task: 'foreground' }) : finish('all is done');
      },
    });
    const task = await sendFor(client, said('go'));
    expect(stateOf(task)).toBe('INPUT_REQUIRED');
    const below = task.status?.message?.referenceTaskIds ?? [];
    expect(stateOf(await get(client, below[0] ?? ''))).toBe('INPUT_REQUIRED');
    const done = await sendFor(client, said('go on', { taskId: task.id }));
    expect([stateOf(done), answerOf(done)]).toEqual(['COMPLETED', 'all is done']);
    expect(done.status?.message?.referenceTaskIds).toEqual(below);
    expect(answerOf(await get(client, below[0] ?? ''))).toBe('below is done');
  });

  it('ids: a question has one messageId, streamed, got, listed, subscribed to, asked in another process, and posted', async () => {
    const to = await receiver();
    const book = make('book', () => 'booked', { needsApproval: true });
    const own = agent({
      name: 'own',
      tools: [book],
      planner: { name: 'books', next: script(call('book'), finish('ok')) },
    });
    const first = await servedAgent({ world: { agents: [own] } });
    const hooks = webhooks({ runtime: first.runtime, allowHosts: [to.host], pollMs: 20 });
    const second = await servedAgent({ world: { agents: [own], journal: first.journal }, a2a: { webhooks: hooks } });
    const stop = hooks.work();
    const [one, other] = [await clientAt(first.url, binding), await clientAt(second.url, binding)];
    const config = { id: 'c', taskId: '', tenant: '', url: to.url, token: '', authentication: undefined };
    const events = await reading(
      other.sendMessageStream(asked(said('book it'), { taskPushNotificationConfig: config })),
    ).end;
    const last = events.at(-1);
    const id = last?.$case === 'statusUpdate' ? last.value.status?.message?.messageId : undefined;
    const task = last?.$case === 'statusUpdate' ? last.value.taskId : '';
    expect(id).toMatch(/./);
    const again = reading(subscribed(one, task));
    await until(() => again.events.length > 0 && to.received.some(({ body }) => body.statusUpdate?.status.message));
    const [whole] = again.events;
    const listed = await one.listTasks({ tenant: '', contextId: '', status: 0, pageToken: '' } as never);
    expect([
      (await get(one, task)).status?.message?.messageId,
      (await get(other, task)).status?.message?.messageId,
      listed.tasks[0]?.status?.message?.messageId,
      whole?.$case === 'task' ? whole.value.status?.message?.messageId : undefined,
      to.received.find(({ body }) => body.statusUpdate?.status.message)?.body.statusUpdate.status.message.messageId,
    ]).toEqual([id, id, id, id, id]);
    // What is said of something that was no answer is another message.
    const asksAgain = await sendFor(one, said('hm', { taskId: task }));
    expect(asksAgain.status?.message?.messageId).not.toBe(id);
    await sendFor(one, said('approve', { taskId: task }));
    await again.end;
    await stop();
  });

  it('the client going away never cancels: a task that is streamed or waited for goes on', async () => {
    const { opened, open } = gate();
    const { client, runtime } = await served(binding, {
      planner: script(call('hold'), finish('done')),
      tools: [make('hold', () => opened.then(() => 'held'))],
    });
    const leaves = new AbortController();
    const options = { signal: leaves.signal };
    const streamed = reading(client.sendMessageStream(asked(said('go')), options));
    const waited = client.sendMessage(asked(said('go')), options).catch(() => 'gone');
    await until(async () => streamed.events.length > 0 && (await runtime.list({ status: ['running'] })).length === 2);
    leaves.abort();
    await expect(streamed.end).rejects.toThrow();
    expect(await waited).toBe('gone');
    open();
    for (const { identity } of await runtime.list()) {
      await until(async () => stateOf(await get(client, identity.run)) !== 'WORKING');
      expect(stateOf(await get(client, identity.run))).toBe('COMPLETED');
    }
  });

  it('answers: the same again is the same, a different second one is refused, and the call has its effect once', async () => {
    const made: Json[] = [];
    const book = make('book', (args) => made.push(args as Json), { needsApproval: true, effect: 'once' });
    const { client } = await served(binding, {
      planner: script(
        parallel([
          { tool: 'book', args: { seat: 1 } },
          { tool: 'book', args: { seat: 2 } },
        ]),
      ),
      tools: [book],
    });
    const task = await sendFor(client, said('book both'));
    const content = task.status?.message?.parts.find((part) => part.content?.$case === 'data')?.content?.value;
    const [token = ''] = (content as { pauses: { token: string }[] }).pauses.map((each) => each.token);
    const yes = data({ token, approved: true }, { taskId: task.id });
    await sendFor(client, yes);
    await until(() => made.length === 1);
    const same = await sendFor(client, yes);
    expect(wordsOf(same.status?.message?.parts)).not.toContain('no answer');
    const other = await sendFor(client, data({ token, approved: false }, { taskId: task.id }));
    expect(asksOf(other)).toEqual([
      'INPUT_REQUIRED',
      expect.stringMatching(/^That was no answer|^That answer was not taken/),
    ]);
    expect(made).toEqual([{ seat: 1 }]);
  });

  it('answers: one that is sent again does not answer the next question', async () => {
    const made: Json[] = [];
    const book = make('book', (args) => made.push(args as Json), { needsApproval: true, effect: 'once' });
    const { client } = await served(binding, {
      planner: script(call('book', { seat: 1 }), call('book', { seat: 2 })),
      tools: [book],
    });
    const task = await sendFor(client, said('book both'));
    const yes = said('approve', { taskId: task.id });
    const next = await sendFor(client, yes);
    expect(asksOf(next)).toEqual(['INPUT_REQUIRED', expect.stringContaining('{"seat":2}')]);
    expect(asksOf(await sendFor(client, yes))).toEqual(asksOf(next));
    expect(made).toEqual([{ seat: 1 }]);
  });
});
