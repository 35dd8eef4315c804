/** A2A 1.0 with its own client, unmodified, over both bindings. */
import { type Task, TaskState } from '@a2a-js/sdk';
import { TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import { describe, expect, it } from 'vitest';
import { agent } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { answerOf, asked, BINDINGS, clientAt, data, Reader, said, sendFor, servedAgent, wordsOf } from './a2a-kit.ts';

describe.each(BINDINGS)('A2A over %s', (binding) => {
  it('SendMessage waits for the end unless returnImmediately; GetTask gives the same task again', async () => {
    const { url } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('say one two three'));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(answerOf(task)).toBe('one two three');
    const again = await client.getTask({ tenant: '', id: task.id, historyLength: undefined });
    expect(again).toEqual(task);
    expect(wordsOf(again.history[0]?.parts)).toBe('say one two three');
    const soon = await sendFor(client, said('slow 5'), { returnImmediately: true });
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(soon.status?.state);
  });

  it('SendStreamingMessage: the first event is a Task, then words that add up to the answer, then the end', async () => {
    const { url } = await servedAgent();
    const client = await clientAt(url, binding);
    const reader = await new Reader().read(client.sendMessageStream(asked(said('slow 12'))));
    expect(reader.kinds[0]).toBe('task');
    expect(reader.kinds.filter((kind) => kind === 'artifactUpdate').length).toBeGreaterThan(5);
    expect(reader.kinds.at(-1)).toBe('statusUpdate');
    expect(reader.states.at(-1)).toBe(TaskState.TASK_STATE_COMPLETED);
    const task = await client.getTask({ tenant: '', id: reader.task?.id ?? '', historyLength: undefined });
    expect(reader.answer).toBe(answerOf(task));
  });

  it.each([
    true,
    false,
  ])('answering with remember: %s holds for questions to come, and one that cannot be is refused', async (approved) => {
    let paid = 0;
    const pay = make('pay', () => `paid ${++paid}`, { needsApproval: true, effect: 'once' });
    const clerk = agent({
      name: 'clerk',
      planner: script(call('pay'), call('pay'), call('pay'), finish('done')),
      tools: [pay],
    });
    const { url } = await servedAgent({ world: { agents: [clerk] } });
    const client = await clientAt(url, binding);
    const { id: taskId } = await sendFor(client, said('go'));
    const answered = (remember: object) => sendFor(client, data({ approved, remember }, { taskId }));
    const wrong = await answered({ scope: 'ever' });
    expect([wrong.status?.state, paid]).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, 0]);
    const done = await answered({ scope: 'session', match: 'tool' });
    expect([done.status?.state, paid]).toEqual([TaskState.TASK_STATE_COMPLETED, approved ? 3 : 0]);
  });

  it('answering: free text approve/reject or a data part {approved}; anything else asks again', async () => {
    const { url, effects } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('refund A-17'));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(wordsOf(task.status?.message?.parts)).toMatch(/May refund be called with .*A-17.*approve/s);
    const on = { taskId: task.id, contextId: task.contextId };
    const asksAgain = await sendFor(client, said('hm, is that much?', on));
    expect([asksAgain.status?.state, effects.count('refund')]).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, 0]);
    expect(wordsOf(asksAgain.status?.message?.parts)).toContain('no answer');
    const yes = said('approve', on);
    const done = await sendFor(client, yes);
    expect([done.status?.state, answerOf(done), effects.count('refund')]).toEqual([
      TaskState.TASK_STATE_COMPLETED,
      'A-17 is refunded.',
      1,
    ]);
    // The same answer again is the same, and runs nothing.
    expect((await sendFor(client, yes)).status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const denied = await sendFor(client, said('refund B-18'));
    const no = await sendFor(client, data({ approved: false, reason: 'too much' }, { taskId: denied.id }));
    expect([answerOf(no), effects.count('refund')]).toEqual(['B-18 is not refunded.', 1]);
  });

  it('answering two questions by their tokens; approve with other arguments: data part {approved, args}', async () => {
    const { url, effects } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('refund A-17 and B-18'));
    const tokens = tokensOf(task);
    expect(tokens).toHaveLength(2);
    // Which of them is meant nobody can know.
    const unclear = await sendFor(client, said('approve', { taskId: task.id }));
    expect([unclear.status?.state, effects.count('refund')]).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, 0]);
    const args = { order: 'A-17', amount: 5 };
    const one = await sendFor(client, data({ token: tokens[0], approved: true, args }, { taskId: task.id }));
    expect(tokensOf(one)).toEqual([tokens[1]]);
    const stale = await sendFor(client, data({ token: tokens[0], approved: false }, { taskId: task.id }));
    expect(tokensOf(stale)).toEqual([tokens[1]]);
    const done = await sendFor(client, data({ token: tokens[1], approved: false }, { taskId: task.id }));
    expect([answerOf(done), effects.count('refund')]).toEqual(['A-17 is refunded. B-18 is not refunded.', 1]);
  });

  it('answering the second of two questions while the call of the first is carried out: the yes is no words, which would withdraw the question', async () => {
    const { url, effects } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('refund A-17 and B-18'));
    const { pauses } = JSON.parse(JSON.stringify(task.status?.message?.parts[1]?.content)).value;
    const [one, two] = pauses.map(({ token }: { token: string }) => token);
    const on = { taskId: task.id };
    await sendFor(client, data({ approved: true, token: one }, on), { returnImmediately: true });
    await until(() => effects.count('refund') === 1);
    const hurry = await sendFor(client, said('hurry', on));
    expect(wordsOf(hurry.status?.message?.parts)).toMatch(/^That was no answer, and nothing has happened\./);
    // The same answer of somebody else is one, too.
    await sendFor(client, data({ approved: true, token: one }, on), { returnImmediately: true });
    expect(answerOf(await sendFor(client, data({ approved: true, token: two }, on)))).toBe(
      'A-17 is refunded. B-18 is refunded.',
    );
    expect(effects.count('refund')).toBe(2);
  });

  it('begins one task for one message, however often and at once it is sent; ListTasks and a context that goes on', async () => {
    const { url, runtime } = await servedAgent();
    const client = await clientAt(url, binding);
    const message = said('say once');
    const tasks = await Promise.all([1, 2, 3].map(() => sendFor(client, message)));
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(1);
    const [{ contextId, id }] = tasks as [Task];
    const next = await sendFor(client, said('say more', { contextId }));
    expect(next.contextId).toBe(contextId);
    await sendFor(client, said('say elsewhere'));
    const listed = await client.listTasks(listing({ contextId }));
    expect(listed.tasks.map((task) => task.id)).toEqual([next.id, id]);
    const page = await client.listTasks(listing({ pageSize: 2, includeArtifacts: true }));
    expect([page.tasks.length, page.totalSize]).toEqual([2, 3]);
    const rest = await client.listTasks(listing({ pageSize: 2, pageToken: page.nextPageToken }));
    expect([rest.tasks.map((task) => task.id), rest.totalSize, rest.nextPageToken]).toEqual([[id], 3, '']);
    expect((await runtime.list()).length).toBe(3);
  });

  it('errors: unknown task -32001, cancel of a finished one -32002, message or subscribe to a terminal one -32004', async () => {
    const { url, effects } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('refund A-17'));
    const stream = new Reader().read(client.resubscribeTask({ tenant: '', id: task.id }));
    const cancelled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined });
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    const reader = await stream;
    expect([reader.kinds[0], reader.states.at(-1)]).toEqual(['task', TaskState.TASK_STATE_CANCELED]);
    expect((await client.cancelTask({ tenant: '', id: task.id, metadata: undefined })).id).toBe(task.id);
    await expect(sendFor(client, said('approve', { taskId: task.id }))).rejects.toThrow(UnsupportedOperationError);
    await expect(new Reader().read(client.resubscribeTask({ tenant: '', id: task.id }))).rejects.toThrow(
      UnsupportedOperationError,
    );
    const done = await sendFor(client, said('say it'));
    await expect(client.cancelTask({ tenant: '', id: done.id, metadata: undefined })).rejects.toThrow(
      TaskNotCancelableError,
    );
    await expect(client.getTask({ tenant: '', id: 'nothing', historyLength: undefined })).rejects.toThrow(
      TaskNotFoundError,
    );
    expect(effects.count('refund')).toBe(0);
  });

  it('reattaching: SubscribeToTask begins with the Task and its artifacts so far, then live, no gap, no repeat', async () => {
    const { url } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('slow 25'), { returnImmediately: true });
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(task.status?.state);
    const first = new Reader();
    const early = first.read(client.resubscribeTask({ tenant: '', id: task.id }));
    await until(() => first.answer.includes('w2'));
    const late = new Reader().read(client.resubscribeTask({ tenant: '', id: task.id }));
    const wanted = Array.from({ length: 25 }, (_, index) => `w${index}`).join(' ');
    expect([(await early).answer, (await late).answer]).toEqual([wanted, wanted]);
    expect((await late).kinds[0]).toBe('task');
  });

  it('errors: FAILED with status.message, never a stack, path or key', async () => {
    const { url } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('fail'));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_FAILED);
    expect(wordsOf(task.status?.message?.parts)).toMatch(/went wrong/);
    expect(JSON.stringify(task)).not.toMatch(/srv|connect|sk-/);
  });

  it('auth: no stream before 401, tasks of others are not found; the card is open and declares securitySchemes', async () => {
    const { url } = await servedAgent({
      handler: { authenticate },
      a2a: { card: { securitySchemes }, extendedCard: (visit) => ({ name: `for ${visit.owner.user}` }) },
    });
    const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
    expect(card).toMatchObject({
      name: 'agent',
      capabilities: { streaming: true, pushNotifications: false },
      securitySchemes,
    });
    const stranger = await clientAt(url, binding);
    await expect(new Reader().read(stranger.sendMessageStream(asked(said('say it'))))).rejects.toThrow(/401/);
    const as =
      (user: string): typeof fetch =>
      (input, init) =>
        fetch(input, { ...init, headers: { ...(init?.headers as object), authorization: `Bearer ${user}` } });
    const [ann, ben] = [await clientAt(url, binding, as('ann')), await clientAt(url, binding, as('ben'))];
    const task = await sendFor(ann, said('refund A-17'));
    await expect(ben.getTask({ tenant: '', id: task.id, historyLength: undefined })).rejects.toThrow(TaskNotFoundError);
    await expect(sendFor(ben, said('approve', { taskId: task.id }))).rejects.toThrow(TaskNotFoundError);
    await expect(ben.cancelTask({ tenant: '', id: task.id, metadata: undefined })).rejects.toThrow(TaskNotFoundError);
    expect((await ben.listTasks(listing({}))).tasks).toEqual([]);
    expect((await ann.listTasks(listing({}))).tasks).toHaveLength(1);
    expect((await ann.getAgentCard()).name).toBe('for ann');
    // A tenant may be named, in the path too: one's own.
    const own = { tenant: 'acme', id: task.id };
    expect((await ann.getTask({ ...own, historyLength: undefined })).id).toBe(task.id);
    expect((await ann.listTasks(listing({ tenant: 'acme' }))).tasks).toHaveLength(1);
    await expect(ann.getTask({ ...own, tenant: 'other', historyLength: undefined })).rejects.toThrow(TaskNotFoundError);
    const [first] = await Promise.all([
      new Reader().read(ann.resubscribeTask(own), ({ kinds }) => kinds.length > 0),
      ann.cancelTask({ ...own, metadata: undefined }),
    ]);
    expect(first.kinds).toEqual(['task']);
  });

  it('SSE: no-cache and x-accel-buffering: no', async () => {
    const { url } = await servedAgent();
    const heads: Headers[] = [];
    const client = await clientAt(url, binding, async (input, init) => {
      const answer = await fetch(input, init);
      heads.push(answer.headers);
      return answer;
    });
    await new Reader().read(client.sendMessageStream(asked(said('say it'))));
    const {
      'content-type': type,
      'cache-control': cache,
      'x-accel-buffering': buffers,
    } = Object.fromEntries(heads[0] ?? []);
    expect([type, cache, buffers]).toEqual([
      expect.stringContaining('text/event-stream'),
      expect.stringContaining('no-cache'),
      'no',
    ]);
  });

  it('INPUT_REQUIRED tasks can be subscribed to (a2a-go#439): the Task comes first, then what the answer leads to', async () => {
    const { url } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('refund A-17'));
    const reader = new Reader();
    const stream = reader.read(client.resubscribeTask({ tenant: '', id: task.id }));
    await until(() => reader.kinds.length > 0);
    expect([reader.kinds[0], reader.states]).toEqual(['task', [TaskState.TASK_STATE_INPUT_REQUIRED]]);
    await sendFor(client, said('approve', { taskId: task.id }));
    await stream;
    expect(reader.answer).toBe('A-17 is refunded.');
    expect(reader.states.slice(1)).toEqual([TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED]);
  });
});

describe('the wire of A2A 1.0', () => {
  it('versions, methods and errors: A2A-Version mismatch is -32009, and what is no request is told in the words of the protocol', async () => {
    const { url } = await servedAgent();
    const rpc = async (body: unknown, headers: Record<string, string> = { 'a2a-version': '1.0' }) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: text };
      return (await (await fetch(`${url}/a2a`, init)).json()) as {
        id: unknown;
        error: { code: number; data: unknown };
      };
    };
    const call = (method: string, params: unknown = {}) => ({ jsonrpc: '2.0', id: 7, method, params });
    const codes = await Promise.all([
      rpc(call('GetTask', { id: 'x' }), {}),
      rpc(call('GetTask', { id: 'x' }), { 'a2a-version': '0.3' }),
      rpc(call('message/send'), { 'a2a-version': '2.0' }),
      rpc(call('message/sent'), { 'a2a-version': '0.3' }),
      rpc('{'),
      rpc([]),
      rpc({ jsonrpc: '2.0', method: 'GetTask' }),
      rpc(call('message/send')),
      rpc(call('SendMessage', {})),
      rpc(call('GetTask', { id: 'x' })),
      rpc(call('GetTask', { id: 'x', tenant: 'other' })),
      rpc(call('GetExtendedAgentCard')),
      rpc(call('ListTaskPushNotificationConfigs', { taskId: 'x' })),
      rpc('x', { 'a2a-version': '1.0', 'content-type': 'text/plain' }),
      rpc(call('SendMessage', { message: saidOnWire(), configuration: { acceptedOutputModes: ['image/png'] } })),
      rpc(call('constructor')),
    ]);
    expect(codes.map(({ error }) => error.code)).toEqual([
      ...[
        -32_009, -32_009, -32_009, -32_601, -32_700, -32_600, -32_600, -32_601, -32_602, -32_001, -32_001, -32_007,
        -32_003, -32_005,
      ],
      ...[-32_005, -32_601],
    ]);
    expect(codes[9]).toMatchObject({
      id: 7,
      error: { data: [{ reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' }] },
    });
    const odd = ['\0', 'a\0b', '\ud800', ' ', '../x', 'x'.repeat(3_000), '__proto__'];
    for (const word of odd) {
      const messages = [{ contextId: word }, { taskId: word }, { messageId: word }].map((more) => ({
        ...saidOnWire(),
        messageId: crypto.randomUUID(),
        ...more,
      }));
      for (const message of messages) {
        const answer = await rpc(call('SendMessage', { message }));
        if ('error' in answer) expect(answer.error.code, JSON.stringify(message)).not.toBe(-32_603);
      }
      const { error } = await rpc(call('GetTask', { id: word }));
      expect([-32_001, -32_602]).toContain(error.code);
      const { error: unlisted } = await rpc(call('ListTasks', { pageToken: word }));
      expect(unlisted.code).toBe(-32_602);
    }
    const broken = { ...saidOnWire(), parts: [{ raw: 'aGk***', mediaType: 'text/plain' }] };
    expect(await rpc(call('SendMessage', { message: broken }))).toMatchObject({
      error: { code: -32_602, message: 'The data of a file must be base64.' },
    });
    expect(await rpc(call('ListTasks', { status: 'constructor' }))).toMatchObject({
      error: { code: -32_602, message: 'There is no state "constructor".' },
    });
    const rest = await fetch(`${url}/a2a/v1/tasks/x`, { headers: { 'a2a-version': '1.0' } });
    expect([rest.status, rest.headers.get('content-type')]).toEqual([404, 'application/a2a+json']);
    expect(await rest.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } });
    expect((await fetch(`${url}/a2a/v1/tasks/x`)).status).toBe(400);
  });

  it('methods, enums and parts: no kind, no final, TASK_STATE_*, ROLE_*; HTTP+JSON is application/a2a+json', async () => {
    const { url } = await servedAgent();
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
    const asked = { message: { ...saidOnWire(), parts: [{ text: 'refund A-17' }] } };
    const post = async (path: string, body: object) =>
      await fetch(`${url}/a2a${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const rpc = (method: string, params: object) => post('', { jsonrpc: '2.0', id: 1, method, params });
    const rest = await post('/v1/message:send', asked);
    expect(rest.headers.get('content-type')).toBe('application/a2a+json');
    const { task } = (await rest.json()) as { task: { id: string; contextId: string; status: object } };
    expect(task).toMatchObject({
      status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_AGENT' } },
      history: [{ role: 'ROLE_USER' }],
    });
    const same = (await (await rpc('SendMessage', asked)).json()) as { result: unknown };
    expect(same.result).toEqual({ task });
    const stream = rpc('SubscribeToTask', { id: task.id });
    const events = (await stream).text();
    await rpc('SendMessage', {
      message: { ...saidOnWire(), messageId: 'n', taskId: task.id, parts: [{ text: 'approve' }] },
    });
    const told = (await events).split('\n\n').flatMap((each) => (each.startsWith('data: ') ? [each.slice(6)] : []));
    // Each event has exactly one of the fields of a StreamResponse.
    const fields = told.map((each) => Object.keys((JSON.parse(each) as { result: object }).result));
    expect(new Set(fields.map(String))).toEqual(new Set(['task', 'statusUpdate', 'artifactUpdate']));
    expect(JSON.stringify([task, told])).not.toMatch(/"kind"|"final"/);
  });
});

const securitySchemes = { bearer: { httpAuthSecurityScheme: { scheme: 'bearer' } } };

function saidOnWire() {
  return { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'say hi' }] };
}

function authenticate(request: Request) {
  const user = request.headers.get('authorization')?.replace('Bearer ', '');
  return user === undefined ? new Response('who?', { status: 401 }) : { identity: { tenant: 'acme', user } };
}

function tokensOf(task: Task): readonly string[] {
  const content = task.status?.message?.parts.find((part) => part.content?.$case === 'data')?.content;
  const { pauses = [] } = (content?.value ?? {}) as { pauses?: readonly { token: string }[] };
  return pauses.map(({ token }) => token);
}

function listing(query: object): never {
  return { tenant: '', contextId: '', status: 0, pageToken: '', ...query } as never;
}
