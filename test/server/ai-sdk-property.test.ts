/** However a turn goes: who reads it live, who comes late and who loads it have the same messages. */
import { DefaultChatTransport, safeValidateUIMessages, type UIMessage } from 'ai';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, Move, Planner, SpokenDelta } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { createHandler } from '#server';
import { aiSdk } from '#server/ai-sdk';
import { make } from '../kit/tools.ts';
import { Chat, plain } from '../kit/ui-chat.ts';
import { turn, until } from '../kit/waiting.ts';

interface ScriptedStep {
  readonly reasoning: readonly string[];
  readonly text: readonly string[];
  /** What was said of the step first, and is taken back. */
  readonly void: readonly string[];
  readonly calls: readonly { readonly tool: string; readonly answer: 'yes' | 'no' | 'edit' }[];
}

const word = fc.string({ minLength: 1, maxLength: 6 }).map((text) => `${text.replace(/\s/g, '_')}.`);
const words = fc.array(word, { maxLength: 4 });
const calls = fc.array(
  fc.record({
    tool: fc.constantFrom('echo', 'breaks', 'asks', 'pieces', 'reports'),
    answer: fc.constantFrom('yes' as const, 'no' as const, 'edit' as const),
  }),
  { maxLength: 3 },
);
const step = fc.record({ reasoning: words, text: words, void: words, calls });
const script: fc.Arbitrary<readonly ScriptedStep[]> = fc.array(step, { minLength: 1, maxLength: 4 });

const tools = [
  make('echo', (args) => args),
  make('breaks', () => Promise.reject(new Error('secret of the machine'))),
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
];

function plannerOf(steps: readonly ScriptedStep[]): Planner {
  return {
    name: 'scripted',
    async *next({ trajectory: { count } }): AsyncGenerator<SpokenDelta, Move> {
      const {
        reasoning,
        text,
        calls: made,
        void: wrong,
      } = steps[count] ?? { reasoning: [], text: ['end'], calls: [], void: [] };
      for (const each of wrong) yield { type: 'text', text: each };
      if (wrong.length > 0) yield { type: 'reset' };
      for (const each of reasoning) {
        yield { type: 'reasoning', text: each };
        await turn();
      }
      for (const each of text) {
        yield { type: 'text', text: each };
        await turn();
      }
      const said = { text: text.join(''), reasoning: reasoning.join('') };
      const notes = {
        ...(said.text === '' ? {} : { text: said.text }),
        ...(said.reasoning === '' ? {} : { reasoning: said.reasoning }),
      };
      if (made.length === 0) return { decision: { kind: 'finish', reason: 'goal', payload: said.text }, ...notes };
      const branches = made.map(({ tool }, index) => ({ id: `b${index}`, tool, args: { step: count, index } as Json }));
      return { decision: { kind: 'call_parallel', branches }, ...notes };
    },
  };
}

function servedBy(steps: readonly ScriptedStep[]) {
  const runtime = createRuntime({ planner: plannerOf(steps), tools, journal: memoryJournal() });
  const handler = createHandler({ runtime, parts: [aiSdk()] });
  const statuses: number[] = [];
  const ask = async (url: string | URL | globalThis.Request, init?: RequestInit): Promise<Response> => {
    const answer = await handler(new Request(url, init));
    statuses.push(answer.status);
    return answer;
  };
  const chatOf = (messages: UIMessage[] = []): Chat =>
    new Chat('http://localhost', {
      messages,
      transport: new DefaultChatTransport({ api: 'http://localhost/api/chat', fetch: ask as typeof fetch }),
    });
  const history = async (): Promise<UIMessage[]> =>
    (await (await ask('http://localhost/api/chat/talk/messages')).json()) as UIMessage[];
  return { runtime, chatOf, history, statuses };
}

/** Of the user's messages the ids count. A step of which all was taken back leaves its mark with who was there, which shows nothing. */
function shown(messages: readonly UIMessage[]): unknown {
  return (plain(messages) as UIMessage[]).flatMap(({ id, role, parts, metadata }): object[] => {
    if (role === 'user') return [{ id, role }];
    const told = partsOf(parts);
    return told.length === 0 ? [] : [{ id, role, metadata, parts: told }];
  });
}

function partsOf(parts: UIMessage['parts']): UIMessage['parts'] {
  return parts.filter(
    ({ type }, index) => type !== 'step-start' || ![undefined, 'step-start'].includes(parts[index + 1]?.type),
  );
}

/** Answers what is asked, as the script says, until the turn has ended. */
async function play(chat: Chat, steps: readonly ScriptedStep[]): Promise<void> {
  await chat.sendMessage({ text: 'go' });
  while (chat.approvals.length > 0) {
    expect([chat.status, chat.error]).toEqual(['ready', undefined]);
    for (const id of chat.approvals) {
      const part = chat.calls.find(({ approval }) => approval?.id === id);
      const { step: at, index } = part?.input as { step: number; index: number };
      const answer = steps[at]?.calls[index]?.answer;
      const edits = answer === 'edit' ? { [id]: { edited: true } } : {};
      await chat.addToolApprovalResponse({ id, approved: answer !== 'no' });
      Object.assign(body.edits, edits);
    }
    await chat.sendMessage(undefined, { body: { edits: body.edits } });
  }
  expect([chat.status, chat.error]).toEqual(['ready', undefined]);
}

const body: { edits: Record<string, Json> } = { edits: {} };

describe('the messages of a turn', () => {
  it('reattaching: replay and live join without gap or repeat; live, late and in the history the messages are the same', async () => {
    await fc.assert(
      fc.asyncProperty(script, fc.nat({ max: 30 }), async (steps, moments) => {
        body.edits = {};
        const { runtime, chatOf, history } = servedBy(steps);
        const chat = chatOf();
        const playing = play(chat, steps);
        for (let moment = 0; moment < moments; moment += 1) await turn();
        const late = chatOf(await history());
        await late.resumeStream();
        await playing;
        const told = await history();
        expect(shown(told)).toEqual(shown(chat.messages));
        expect(await safeValidateUIMessages({ messages: told })).toMatchObject({ success: true });
        expect(JSON.stringify(told)).not.toContain('secret');
        // Whoever came late has seen the turn up to its next question, or to its end.
        expect(late.error).toBeUndefined();
        await until(async () => (await runtime.session('talk').turns())[0]?.status === 'finished');
        const page = chatOf(told);
        await page.resumeStream();
        expect(page.messages).toEqual(told);
        const parts = partsOf(late.messages.at(-1)?.parts ?? []);
        const whole = partsOf(told.at(-1)?.parts ?? []);
        if (late.messages.at(-1)?.role === 'assistant')
          expect(parts.map(({ type }) => type)).toEqual(whole.slice(0, parts.length).map(({ type }) => type));
        await runtime.close();
      }),
      { numRuns: 40 },
    );
  });
});
