/** Any turn, told live, from its history, late, or to a client that has lost its connection, comes to the same messages in the real clients. */
import { type BaseEvent, HttpAgent, type Message } from '@ag-ui/client';
import { AGUI_MEDIA_TYPE, EventEncoder } from '@ag-ui/encoder';
import { HttpAgent as OldHttpAgent } from 'ag-ui-client-0059';
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
  /** The task goes on beside the steps that follow. */
  readonly isBackground: boolean;
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
  /** In which order what goes on at once comes: each number picks who is next. */
  readonly order: readonly number[];
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
    isBackground: fc.boolean(),
  }),
  step: fc.record({
    reasoning: words,
    text: words,
    void: fc.oneof({ weight: 3, arbitrary: fc.constant('') }, { weight: 1, arbitrary: words }),
    cut: fc.integer({ min: 1, max: 4 }),
    isHeard: fc.boolean(),
    calls: fc.array(tie('call'), { maxLength: 3 }),
    order: fc.array(fc.nat(5), { maxLength: 12 }),
  }),
}));
const turn: fc.Arbitrary<Turn> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  answer: fc.option(words),
  end: fc.constantFrom('finish', 'error', 'cancelled', 'paused'),
});

/** Something that happens in parts, beside which other things happen. */
type Doing = Generator<void, void>;

/** The events of a turn as a live reader has them. */
class Made {
  readonly events: RunEvent[] = [];
  readonly #seqs = new Map<string, number>();

  constructor({ steps, answer, end }: Turn) {
    const run = { run: 'run_1', path: [] };
    this.#add(run, 'run.started', { query: 'go', agent: 'a' });
    this.#add(run, 'turn.started', { query: 'go', continues: [], messages: ['m1'] });
    const all: Doing[] = [];
    const own = this.#steps(run, steps, answer ?? undefined, all);
    all.push(own);
    const order = steps.flatMap((step) => step.order);
    // Of a turn that waits, tasks may still be under way.
    for (const _ of mixing(all, order)) if (end === 'paused' && !all.includes(own)) break;
    if (end === 'error') this.#add(run, 'planner.error', { error: { code: 'tool_failed', message: 'secret' } });
    else if (end === 'paused') this.#add(run, 'run.paused', { pauses: [pause(run.run)] }, true);
    else
      this.#add(run, 'planner.finish', {
        reason: end === 'finish' ? 'goal' : 'cancelled',
        ...(answer !== null && { payload: answer }),
      });
  }

  *#steps(of: Place, steps: readonly Step[], answer: string | undefined, beside: Doing[]): Doing {
    for (const [index, each] of steps.entries())
      yield* this.#step(of, index, each, answer === undefined && index === steps.length - 1, beside);
    // An answer that was said is the text of the last step.
    const last = { reasoning: '', void: '', cut: 2, isHeard: false, calls: [], order: [] };
    if (answer !== undefined) yield* this.#step(of, steps.length, { ...last, text: answer }, true, beside);
  }

  *#step(of: Place, index: number, step: Step, isLast: boolean, beside: Doing[]): Doing {
    const { reasoning, text, void: gone, cut, isHeard, calls, order } = step;
    const pieces = (all: string, size: number): readonly { text: string; offset: number }[] =>
      Array.from({ length: Math.ceil(all.length / size) }, (_, at) => ({
        text: all.slice(at * size, (at + 1) * size),
        offset: at * size,
      }));
    const add = (type: string, payload: object): void => this.#add(of, type, { step: index, ...payload }, true);
    function* say(channel: 'text' | 'reasoning', all: string): Doing {
      for (const piece of pieces(all, cut)) yield add('token', { channel, ...piece });
    }
    function* write(callId: string, tool: string, all: string): Doing {
      for (const piece of pieces(all, cut * 2)) yield add('tool.input', { callId, tool, ...piece });
    }
    const idOf = (call: number): string => `c_${of.run}_${index}_${call}`;
    if (gone !== '') {
      yield* say('text', gone);
      if (isHeard && calls[0] !== undefined) yield* write(idOf(0), calls[0].tool, '{"n":');
      yield add('token.reset', {});
    }
    yield* say('reasoning', reasoning);
    yield* say('text', text);
    for (const [call, { tool, args }] of calls.entries())
      if (isHeard) yield* write(idOf(call), tool, JSON.stringify(args));
    if (isHeard && cut === 4) yield* write(idOf(9), 'dropped', '{}');
    const decisionKind = isLast && calls.length === 0 ? 'Finish' : 'CallParallel';
    const said = { ...(reasoning !== '' && { reasoningTrace: reasoning }), ...(text !== '' && { text }) };
    this.#add(of, 'planner.decision', { step: index, decisionKind, reasoningChars: 0, latencyMs: 1, ...said });
    for (const [call, { tool, args }] of calls.entries()) {
      const callId = isHeard ? { callId: idOf(call) } : {};
      this.#add(of, 'tool.invoked', { step: index, call, tool, args, ...callId }, false, true);
    }
    yield;
    const own = calls.map((each, call) => this.#call(of, index, call, each, beside));
    yield* mixing(own, order);
  }

  *#call(of: Place, index: number, call: number, made: Call, beside: Doing[]): Doing {
    const { tool, end, chunks, below, isBackground } = made;
    const at = { step: index, call, tool };
    for (let piece = 1; piece <= chunks; piece += 1)
      yield this.#add(of, 'tool.chunk', { run: of.run, ...at, attempt: 1, index: piece, chunk: piece }, true);
    if (below.length > 0) {
      const taskId = `${of.run}.${index}.${call}`;
      const kind = isBackground ? 'background' : 'foreground';
      const spawned = { step: index, call, taskId, groupId: 'g', kind, description: 'd' };
      yield this.#add(of, 'task.spawned', spawned);
      const inside = { run: taskId, path: [...of.path, { run: taskId, step: index, call, agent: 'b' }] };
      const task = this.#task(of, inside, below);
      if (isBackground && of.path.length === 0) beside.push(task);
      else yield* task;
    }
    const error = { code: 'tool_failed', message: 'secret' };
    const outcome = end === 'value' ? { kind: 'value', value: { ok: call } } : { kind: end, error };
    const type = end === 'value' ? 'tool.completed' : end === 'error' ? 'tool.failed' : 'tool.skipped';
    if (end === 'rejected') yield this.#add(of, 'tool.rejected', { ...at, token: 't' });
    else yield this.#add(of, type, { ...at, outcome, latencyMs: 1, attempts: 1 });
  }

  *#task(of: Place, inside: Place, steps: readonly Step[]): Doing {
    yield this.#add(inside, 'run.started', { query: 'sub', agent: 'b' });
    yield* this.#steps(inside, steps, undefined, []);
    yield this.#add(inside, 'planner.finish', { reason: 'goal' });
    yield this.#add(of, 'task.completed', { taskId: inside.run });
  }

  #add({ run, path }: Place, type: string, payload: object, isPassing = false, isSame = false): void {
    const seq = (this.#seqs.get(run) ?? 0) + (isPassing || isSame ? 0 : 1);
    this.#seqs.set(run, seq);
    const identity = { tenant: 't', user: 'u', session: 's', run };
    const event = { ...payload, type, identity, seq, occurredAt: 1, ...(path.length > 0 && { path }) };
    this.events.push(event as unknown as RunEvent);
  }
}

/** Goes on with one after another, as `order` picks them, until all are done. More may be added meanwhile. */
function* mixing(doings: Doing[], order: readonly number[]): Doing {
  for (let turn = 0; doings.length > 0; turn += 1) {
    const at = (order[turn % order.length] ?? 0) % doings.length;
    if (doings[at]?.next().done === true) doings.splice(at, 1);
    else yield;
  }
}

interface Place {
  readonly run: string;
  readonly path: readonly TaskStep[];
}

const pause = (run: string) => ({ run, token: 'p', reason: 'await_input' as const });
const PASSING = ['token', 'tool.input', 'token.reset', 'tool.chunk'];
const isRecorded = ({ type }: RunEvent): boolean => !PASSING.includes(type);

/** What a reader has who comes behind the first `count` events: what is recorded of them, the text of the open steps in one piece, and the rest. */
function late(events: readonly RunEvent[], count: number): RunEvent[] {
  const before = events.slice(0, count);
  const runs = [...new Set(before.map(({ identity }) => identity.run))];
  return [...before.filter(isRecorded), ...runs.flatMap((run) => openStep(before, run)), ...events.slice(count)];
}

/** What is said of the open step of a run and is not recorded yet. */
function openStep(before: readonly RunEvent[], run: string): readonly RunEvent[] {
  const own = before.filter(({ identity }) => identity.run === run);
  const from = own.findLastIndex(({ type }) => type === 'planner.decision' || type === 'token.reset') + 1;
  const pieces = own.slice(from).filter((event) => event.type === 'token' || event.type === 'tool.input');
  const groups = Object.groupBy(pieces, (event) => (event.type === 'token' ? event.channel : event.callId));
  const { reasoning = [], text = [], ...inputs } = groups;
  return [reasoning, text, ...Object.values(inputs)].flatMap((group = []) => {
    const [first] = group;
    return first === undefined ? [] : [{ ...first, text: group.map((piece) => piece.text).join(''), offset: 0 }];
  });
}

const USER: Message = { id: 'm1', role: 'user', content: 'go' };

interface Told {
  readonly messages: readonly Message[];
  /** What the server has sent, and what the client's verifier has let through of it. */
  readonly sent: readonly AgUiEvent[];
  readonly seen: readonly BaseEvent[];
  readonly ours: readonly object[];
}
interface Teller {
  readonly held?: readonly Message[];
  readonly known?: ReadonlyMap<string, number>;
  readonly Agent?: typeof HttpAgent;
  readonly isProtobuf?: boolean;
}

/** Everything that a client is told of these events, through its own verifier and fold. */
async function told(events: readonly RunEvent[], teller: Teller = {}): Promise<Told> {
  const { held = [USER], known = new Map(), Agent = HttpAgent, isProtobuf = false } = teller;
  const sent: AgUiEvent[] = [];
  const seen: BaseEvent[] = [];
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
    const encoder = new EventEncoder({ accept: isProtobuf ? AGUI_MEDIA_TYPE : 'text/event-stream' });
    const body = Buffer.concat(sent.map((event) => encoder.encodeBinary(event as unknown as BaseEvent)));
    return new Response(body, { headers: { 'content-type': encoder.getContentType() } });
  };
  const agent = new Agent({ url: 'http://localhost/', fetch: answer, threadId: 't', initialMessages: [...held] });
  agent.subscribe({ onEvent: ({ event }) => void seen.push(event) });
  await agent.runAgent({ runId: 'r' });
  return { messages: agent.messages, sent, seen, ours };
}

/** A client keeps what it has of a reasoning that was taken back, without words. */
const shown = (messages: readonly object[]): object[] =>
  (messages as Message[]).filter(({ role, content }) => !(role === 'reasoning' && content === ''));
/** By their runs: what runs say at once has no order. */
const byRun = (messages: readonly object[]): object =>
  Object.groupBy(shown(messages) as Message[], ({ subagentRunId = '' }: { subagentRunId?: string }) => subagentRunId);

describe('AG-UI order rules: the events of any turn, with tasks beside each other and beside its steps', () => {
  it('pass the verifiers of 1.0 and 0.0.59, in protobuf too, and come to the same messages live, from the history, late, and after a loss', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => void vi.restoreAllMocks());
    await fc.assert(
      fc.asyncProperty(turn, fc.nat(), fc.nat(), async (given, one, two) => {
        const { events } = new Made(given);
        const live = await told(events);
        expect(shown(live.messages)).toEqual(shown(live.ours));
        expect(JSON.stringify(live.sent)).not.toContain('secret');
        const old = await told(events, { Agent: OldHttpAgent as unknown as typeof HttpAgent });
        expect(shown(old.messages)).toEqual(shown(live.messages));
        const binary = await told(events, { isProtobuf: true });
        expect(binary.seen).toEqual(live.seen);
        const history = await told(late(events, events.length - 1), { held: [] });
        expect(byRun(history.messages)).toEqual(byRun(live.messages));
        const count = one % events.length;
        const joined = await told(late(events, count));
        expect(byRun(joined.messages)).toEqual(byRun(live.messages));
        // A client that was told of the beginning, and lost its connection.
        const cut = two % events.length;
        const torn = await heldAfter(events.slice(0, cut));
        const last = events
          .slice(0, cut)
          .findLast(({ path, ...event }) => path === undefined && isRecorded(event as RunEvent));
        for (const known of [new Map(), new Map([['run_1', Math.max(0, (last?.seq ?? 0) - 1)]])]) {
          const again = await told(late(events, cut), { held: torn, known });
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
