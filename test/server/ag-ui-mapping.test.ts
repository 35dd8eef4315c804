/** Any turn, told live, from its history, late, or to a client that has lost its connection, comes to the same messages in the real client. */
import { HttpAgent, type Message } from '@ag-ui/client';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Json, RunEvent, TaskStep } from '#core';
import { type AgUiEvent, Telling } from '#server/ag-ui';

interface Call {
  readonly tool: string;
  readonly args: Json;
  readonly end: 'value' | 'error' | 'rejected' | 'skipped';
  readonly chunks: number;
  readonly below: readonly Step[];
}
interface Step {
  readonly reasoning: string;
  readonly text: string;
  /** What was said before the model failed. */
  readonly void: string;
  readonly cut: number;
  /** Arguments are heard while they are written. */
  readonly isHeard: boolean;
  readonly calls: readonly Call[];
}
interface Turn {
  readonly steps: readonly Step[];
  readonly answer: string | null;
  readonly end: 'finish' | 'error' | 'cancelled' | 'paused';
}

const words = fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'ö', '"'), maxLength: 6 });
const { step } = fc.letrec<{ step: Step; call: Call }>((tie) => ({
  call: fc.record({
    tool: fc.constantFrom('look', 'write'),
    args: fc.oneof(fc.constant<Json>({}), fc.record({ n: fc.nat(9) })),
    end: fc.constantFrom('value', 'error', 'rejected', 'skipped'),
    chunks: fc.nat(2),
    below: fc.oneof({ depthSize: 'small', maxDepth: 2 }, fc.constant([]), fc.array(tie('step'), { maxLength: 2 })),
  }),
  step: fc.record({
    reasoning: words,
    text: words,
    void: fc.oneof({ weight: 3, arbitrary: fc.constant('') }, { weight: 1, arbitrary: words }),
    cut: fc.integer({ min: 1, max: 4 }),
    isHeard: fc.boolean(),
    calls: fc.array(tie('call'), { maxLength: 3 }),
  }),
}));
const turn: fc.Arbitrary<Turn> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  answer: fc.option(words),
  end: fc.constantFrom('finish', 'error', 'cancelled', 'paused'),
});

/** The events of a turn as a live reader has them. */
class Made {
  readonly events: RunEvent[] = [];
  readonly #seqs = new Map<string, number>();

  constructor({ steps, answer, end }: Turn) {
    const run = { run: 'run_1', path: [] };
    this.#add(run, 'run.started', { query: 'go', agent: 'a' });
    this.#add(run, 'turn.started', { query: 'go', continues: [], messages: ['m1'] });
    this.#steps(run, steps, answer ?? undefined);
    if (end === 'error') this.#add(run, 'planner.error', { error: { code: 'tool_failed', message: 'secret' } });
    else if (end === 'paused') this.#add(run, 'run.paused', { pauses: [pause(run.run)] }, true);
    else
      this.#add(run, 'planner.finish', {
        reason: end === 'finish' ? 'goal' : 'cancelled',
        ...(answer !== null && { payload: answer }),
      });
  }

  #steps(of: Place, steps: readonly Step[], answer: string | undefined): void {
    for (const [index, each] of steps.entries())
      this.#step(of, index, each, answer === undefined && index === steps.length - 1);
    // An answer that was said is the text of the last step.
    if (answer !== undefined)
      this.#step(of, steps.length, { reasoning: '', text: answer, void: '', cut: 2, isHeard: false, calls: [] }, true);
  }

  #step(of: Place, index: number, { reasoning, text, void: gone, cut, isHeard, calls }: Step, isLast: boolean): void {
    const say = (channel: 'text' | 'reasoning', all: string): void => {
      for (let at = 0; at < all.length; at += cut)
        this.#add(of, 'token', { step: index, channel, text: all.slice(at, at + cut), offset: at }, true);
    };
    const write = (callId: string, tool: string, all: string): void => {
      for (let at = 0; at < all.length; at += cut * 2)
        this.#add(of, 'tool.input', { step: index, callId, tool, text: all.slice(at, at + cut * 2), offset: at }, true);
    };
    const idOf = (call: number): string => `c_${of.run}_${index}_${call}`;
    if (gone !== '') {
      say('text', gone);
      if (isHeard && calls[0] !== undefined) write(idOf(0), calls[0].tool, '{"n":');
      this.#add(of, 'token.reset', { step: index }, true);
    }
    say('reasoning', reasoning);
    say('text', text);
    for (const [call, { tool, args }] of calls.entries()) if (isHeard) write(idOf(call), tool, JSON.stringify(args));
    if (isHeard && cut === 4) write(idOf(9), 'dropped', '{}');
    const decisionKind = isLast && calls.length === 0 ? 'Finish' : 'CallParallel';
    const said = { ...(reasoning !== '' && { reasoningTrace: reasoning }), ...(text !== '' && { text }) };
    this.#add(of, 'planner.decision', { step: index, decisionKind, reasoningChars: 0, latencyMs: 1, ...said });
    for (const [call, { tool, args }] of calls.entries())
      this.#add(
        of,
        'tool.invoked',
        { step: index, call, tool, args, ...(isHeard && { callId: idOf(call) }) },
        false,
        true,
      );
    for (const [call, each] of calls.entries()) this.#call(of, index, call, each);
  }

  #call(of: Place, index: number, call: number, { tool, end, chunks, below }: Call): void {
    const at = { step: index, call, tool };
    for (let piece = 1; piece <= chunks; piece += 1)
      this.#add(of, 'tool.chunk', { run: of.run, ...at, attempt: 1, index: piece, chunk: piece }, true);
    if (below.length > 0) {
      const task = `${of.run}.${index}.${call}`;
      const inside = { run: task, path: [...of.path, { run: task, step: index, call, agent: 'b' }] };
      this.#add(of, 'task.spawned', {
        step: index,
        call,
        taskId: task,
        groupId: 'g',
        kind: 'foreground',
        description: 'd',
      });
      this.#add(inside, 'run.started', { query: 'sub', agent: 'b' });
      this.#steps(inside, below, undefined);
      this.#add(inside, 'planner.finish', { reason: 'goal' });
      this.#add(of, 'task.completed', { taskId: task });
    }
    const error = { code: 'tool_failed', message: 'secret' };
    const outcome = end === 'value' ? { kind: 'value', value: { ok: call } } : { kind: end, error };
    const type = end === 'value' ? 'tool.completed' : end === 'error' ? 'tool.failed' : 'tool.skipped';
    if (end === 'rejected') this.#add(of, 'tool.rejected', { ...at, token: 't' });
    else this.#add(of, type, { ...at, outcome, latencyMs: 1, attempts: 1 });
  }

  #add({ run, path }: Place, type: string, payload: object, isPassing = false, isSame = false): void {
    const seq = (this.#seqs.get(run) ?? 0) + (isPassing || isSame ? 0 : 1);
    this.#seqs.set(run, seq);
    const identity = { tenant: 't', user: 'u', session: 's', run };
    const event = { ...payload, type, identity, seq, occurredAt: 1, ...(path.length > 0 && { path }) };
    this.events.push(event as unknown as RunEvent);
  }
}

interface Place {
  readonly run: string;
  readonly path: readonly TaskStep[];
}

const pause = (run: string) => ({ run, token: 'p', reason: 'await_input' as const });
const PASSING = ['token', 'tool.input', 'token.reset', 'tool.chunk'];
const isRecorded = ({ type }: RunEvent): boolean => !PASSING.includes(type);

/** What a reader has who comes behind the first `count` events: what is recorded of them, the text of the open step in one piece, and the rest. */
function late(events: readonly RunEvent[], count: number): RunEvent[] {
  const before = events.slice(0, count);
  const from = before.findLastIndex((event) => isRecorded(event) || event.type === 'token.reset') + 1;
  const said = before.slice(from).filter((event) => event.type === 'token');
  const whole = (channel: string): RunEvent[] => {
    const pieces = said.filter((each) => each.channel === channel);
    const [first] = pieces;
    return first === undefined ? [] : [{ ...first, text: pieces.map(({ text }) => text).join(''), offset: 0 }];
  };
  const written = before.slice(from).filter((event) => event.type === 'tool.input');
  const inputs = [...new Set(written.map(({ callId }) => callId))].map((id): RunEvent => {
    const pieces = written.filter(({ callId }) => callId === id);
    return { ...(pieces[0] as RunEvent<'tool.input'>), text: pieces.map(({ text }) => text).join(''), offset: 0 };
  });
  return [...before.filter(isRecorded), ...whole('reasoning'), ...whole('text'), ...inputs, ...events.slice(count)];
}

const USER: Message = { id: 'm1', role: 'user', content: 'go' };

/** Everything that a client is told of these events, through its own verifier and fold. */
async function told(
  events: readonly RunEvent[],
  held: readonly Message[] = [USER],
  known: ReadonlyMap<string, number> = new Map(),
): Promise<{ messages: Message[]; sent: AgUiEvent[]; ours: readonly object[] }> {
  const sent: AgUiEvent[] = [];
  let ours: readonly object[] = [];
  const answer: typeof fetch = async (_, init) => {
    const input = JSON.parse(String(init?.body));
    const run = {
      id: 'run_1',
      events: async function* () {
        yield* events;
      },
      stream: async function* () {},
    };
    const telling = new Telling(
      {
        ...{ input, errorText: ({ code }) => code, before: async () => [], signal: new AbortController().signal },
        ...{ runOf: () => run as never, isAnew: true },
      },
      known,
    );
    sent.push({ type: 'RUN_STARTED', threadId: 't', runId: 'r' });
    for await (const event of telling.of(run as never)) sent.push(event);
    for await (const event of telling.end()) sent.push(event);
    ours = telling.mapper.messages;
    const body = sent.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const agent = new HttpAgent({ url: 'http://localhost/', fetch: answer, threadId: 't', initialMessages: [...held] });
  await agent.runAgent();
  return { messages: agent.messages, sent, ours };
}

/** A client keeps what it has of a reasoning that was taken back, without words. */
const shown = (messages: readonly object[]): object[] =>
  (messages as Message[]).filter(({ role, content }) => !(role === 'reasoning' && content === ''));

describe('events of any turn', () => {
  it('pass the client’s verifier, and come to the same messages live, from the history, late, and after a loss', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => void vi.restoreAllMocks());
    await fc.assert(
      fc.asyncProperty(turn, fc.nat(), fc.nat(), async (given, one, two) => {
        const { events } = new Made(given);
        const live = await told(events);
        expect(shown(live.messages)).toEqual(shown(live.ours));
        expect(JSON.stringify(live.sent)).not.toContain('secret');
        const history = await told(events.filter(isRecorded), []);
        expect(shown(history.messages)).toEqual(shown(live.messages));
        const count = one % (events.length + 1);
        const joined = await told(late(events, count));
        expect(shown(joined.messages)).toEqual(shown(live.messages));
        // A client that was told of the beginning, and lost its connection.
        const cut = two % (events.length + 1);
        const torn = await heldAfter(events.slice(0, cut));
        const last = events
          .slice(0, cut)
          .findLast(({ path, ...event }) => path === undefined && isRecorded(event as RunEvent));
        for (const known of [new Map(), new Map([['run_1', Math.max(0, (last?.seq ?? 0) - 1)]])]) {
          const again = await told(late(events, cut), torn, known);
          expect(sorted(again.messages)).toEqual(sorted(live.messages));
        }
      }),
      { numRuns: 60, interruptAfterTimeLimit: 3_000 },
    );
  });
});

/** What a client holds that was told so far, and no more. */
async function heldAfter(events: readonly RunEvent[]): Promise<Message[]> {
  const paused = { type: 'run.paused', pauses: [pause('run_1')], identity: { run: 'run_1' }, seq: 1e6, occurredAt: 1 };
  const { messages } = await told([...events, paused as unknown as RunEvent]);
  return messages.filter(({ role }) => role !== 'activity');
}

/** By ids: a client appends what it did not have. */
const sorted = (messages: readonly Message[]): object[] =>
  (shown(messages) as Message[]).toSorted((a, b) => (a.id < b.id ? -1 : 1));
