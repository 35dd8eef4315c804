/** Turns of chats in which anything may happen, and what users do with them: for properties of the streams of the AI SDK. */
import { DefaultChatTransport, type UIMessage } from 'ai';
import fc from 'fast-check';
import type { Decision, Json, Move, Planner, SpokenDelta } from '#core';
import { memoryJournal } from '#journal';
import { agent, agentTool, clientTool } from '#pilotage';
import { createRuntime, type Runtime } from '#runtime';
import { NotSent } from '#tools';
import { call, finish, script } from './decisions.ts';
import { ANY, make } from './tools.ts';
import { Chat, historyOf, serveChats } from './ui-chat.ts';
import { checkedFetch } from './ui-stream.ts';
import { turn, until } from './waiting.ts';

const ANSWERS = ['yes', 'no', 'edit', 'message', 'stop'] as const;
const TOOLS = ['echo', 'breaks', 'again', 'asks', 'pieces', 'reports', 'color', 'question', 'clerk'] as const;

interface TurnStep {
  readonly reasoning: readonly string[];
  readonly text: readonly string[];
  /** What was said of the step first, and is taken back. */
  readonly void: readonly string[];
  readonly calls: readonly { readonly tool: (typeof TOOLS)[number]; readonly answer: (typeof ANSWERS)[number] }[];
  /** What the step comes to when it has no calls. */
  readonly end: 'finish' | 'fail' | 'wait';
}

/** A turn, and after how many turns of the event loop it is stopped from another page. Absent: it is not. */
export interface TurnScript {
  readonly steps: readonly TurnStep[];
  readonly stopAfter: number | undefined;
}

const word = fc.string({ minLength: 1, maxLength: 6 }).map((text) => `${text.replace(/\s/g, '_')}.`);
const words = fc.array(word, { maxLength: 3 });

function stepsOf(
  tools: readonly (typeof TOOLS)[number][],
  answers: readonly (typeof ANSWERS)[number][],
  ends: readonly TurnStep['end'][],
): fc.Arbitrary<readonly TurnStep[]> {
  const calls = fc.array(fc.record({ tool: fc.constantFrom(...tools), answer: fc.constantFrom(...answers) }), {
    maxLength: 3,
  });
  const step = fc.record({ reasoning: words, text: words, void: words, calls, end: fc.constantFrom(...ends) });
  return fc.array(step, { minLength: 1, maxLength: 4 });
}

export const turnScript: fc.Arbitrary<TurnScript> = fc.record({
  steps: stepsOf(TOOLS, ANSWERS, ['finish', 'fail', 'wait']),
  stopAfter: fc.option(fc.nat({ max: 60 }), { nil: undefined }),
});
/** Turns that finish, whose calls nobody but the page answers. */
export const quietTurnScript: fc.Arbitrary<TurnScript> = fc.record({
  steps: stepsOf(['echo', 'breaks', 'asks', 'pieces', 'reports'], ['yes', 'no', 'edit'], ['finish']),
  stopAfter: fc.constant(undefined),
});

function toolsOf() {
  const tried = new Set<string>();
  const pay = make('pay', () => 'paid', { needsApproval: true });
  const clerk = agent({
    name: 'clerk',
    planner: script(call('pay', { amount: 3 }), finish('clerk is done')),
    tools: [pay],
  });
  return [
    make('echo', (args) => args),
    make('breaks', () => Promise.reject(new Error('secret of the machine'))),
    make(
      'again',
      (_, { idempotencyKey }) => {
        if (tried.has(idempotencyKey)) return 'at last';
        tried.add(idempotencyKey);
        throw new NotSent();
      },
      { backoff: { baseMs: 0 } },
    ),
    make('asks', (args) => args, { needsApproval: true }),
    make('pieces', async function* () {
      yield 'a';
      await turn();
      yield 'ab';
    }),
    make('reports', async (_, { stream, emit }) => {
      emit({ type: 'data-note', data: 1 });
      const data = stream('data');
      for (const percent of [0, 50, 100]) {
        await data.write({ type: 'data-progress', id: 'p', data: percent });
        await turn();
      }
      return 'reported';
    }),
    clientTool({ name: 'color', description: 'color', effect: 'read', inputSchema: ANY }),
    make('question', async (_, { ask }) => ({ said: await ask({ question: 'Which?' }) })),
    agentTool(clerk, { name: 'clerk', description: 'clerk', inputSchema: ANY }),
  ];
}

function plannerOf(steps: readonly TurnStep[]): Planner {
  return {
    name: 'scripted',
    async *next({ trajectory: { count } }): AsyncGenerator<SpokenDelta, Move> {
      const now = steps[count];
      if (now === undefined) return { decision: finish('end'), text: 'end' };
      for (const each of now.void) yield { type: 'text', text: each };
      if (now.void.length > 0) yield { type: 'reset' };
      for (const type of ['reasoning', 'text'] as const)
        for (const each of now[type]) {
          yield { type, text: each };
          await turn();
        }
      const text = now.text.join('');
      const reasoning = now.reasoning.join('');
      const said = { ...(text === '' ? {} : { text }), ...(reasoning === '' ? {} : { reasoning }) };
      const branches = now.calls.map(({ tool }, index) => ({
        id: `b${index}`,
        tool,
        args: { step: count, index } as Json,
      }));
      if (branches.length > 0) return { decision: { kind: 'call_parallel', branches }, ...said };
      if (now.end === 'fail') throw new Error('secret of the machine');
      const wait: Decision = { kind: 'request_pause', reason: 'await_input' };
      return { decision: now.end === 'wait' ? wait : finish(text), ...said };
    },
  };
}

/** A server with such turns, and clients whose streams are all checked. */
export interface Chats {
  readonly runtime: Runtime;
  readonly url: string;
  readonly checked: ReturnType<typeof checkedFetch>;
  chatOf(messages?: UIMessage[]): Chat;
}

export async function chatsOf({ steps }: TurnScript): Promise<Chats> {
  const runtime = createRuntime({ planner: plannerOf(steps), tools: toolsOf(), journal: memoryJournal() });
  const url = await serveChats(runtime);
  const checked = checkedFetch(fetch);
  const transport = new DefaultChatTransport<UIMessage>({ api: `${url}/api/chat`, fetch: checked.fetch });
  const chatOf = (messages: UIMessage[] = []): Chat => new Chat(url, { messages, transport });
  return { runtime, url, checked, chatOf };
}

/** What was done of which the open page is not told. */
export interface Played {
  readonly isStopped: boolean;
  /** A message came in the place of an answer. */
  readonly isInPlace: boolean;
  /** An answer was given by the endpoint. */
  readonly isBeside: boolean;
}

/** Plays the turn as its user, to its end. */
export async function play(chat: Chat, { steps }: TurnScript, { runtime, url }: Chats): Promise<Played> {
  const played = { isStopped: false, isInPlace: false, isBeside: false };
  const statusNow = async () => (await runtime.session('talk').turns()).at(-1)?.status;
  const answerTo = (input: unknown): (typeof ANSWERS)[number] => {
    const { step: at, index } = (input ?? {}) as { step?: number; index?: number };
    return steps[at ?? -1]?.calls[index ?? -1]?.answer ?? 'yes';
  };
  await chat.sendMessage({ text: 'go' });
  for (let round = 0; round < 40; round += 1) {
    if (!['paused', 'running', 'waiting', 'pending'].includes((await statusNow()) ?? '')) return played;
    if (chat.status === 'error') return played;
    const open = chat.calls.filter(({ state }) => state === 'approval-requested');
    const own = chat.calls.filter(({ state, toolName }) => state === 'input-available' && toolName === 'color');
    const questions = chat.messages
      .flatMap(({ parts }) => parts)
      .filter((part) => part.type === 'data-pause' && (part as { data: { status: string } }).data.status === 'open')
      .map((part) => part as { data: { token: string } });
    const answers = open.map(({ input }) => answerTo(input));
    if (answers.includes('stop')) {
      played.isStopped = true;
      await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
      return played;
    }
    if (answers.includes('message')) {
      played.isInPlace = true;
      await chat.sendMessage({ text: 'rather not' });
      continue;
    }
    for (const { data } of questions) {
      const body = JSON.stringify({ approvalId: data.token, value: 'this' });
      await fetch(`${url}/api/chat/talk/approvals`, { method: 'POST', body });
    }
    const edits: Record<string, Json> = {};
    for (const [index, { approval }] of open.entries()) {
      const id = approval?.id ?? '';
      if (answers[index] === 'edit') edits[id] = { edited: true };
      await chat.addToolApprovalResponse({ id, approved: answers[index] !== 'no' });
    }
    for (const { toolCallId } of own) await chat.addToolOutput({ tool: 'color', toolCallId, output: 'red' } as never);
    if (open.length + own.length > 0) await chat.sendMessage(undefined, { body: { edits } });
    else if (questions.length > 0) {
      // What was answered by the endpoint has no stream of its own.
      played.isBeside = true;
      chat.messages = await historyOf(url);
      await chat.resumeStream();
    } else await chat.sendMessage({ text: 'more' });
  }
  throw new Error('The turn does not end.');
}

/** Stops the turn after so many turns of the event loop, if it is to be stopped. */
export async function stopLater({ stopAfter }: TurnScript, { runtime, url }: Chats): Promise<boolean> {
  if (stopAfter === undefined) return false;
  await until(async () => (await runtime.session('talk').turns()).length > 0);
  for (let moment = 0; moment < stopAfter; moment += 1) await turn();
  const answer = await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
  return ((await answer.json()) as { stopped: boolean }).stopped;
}
