/** Answers that come back to an agent in the AI SDK's messages: to approvals, and results of the client's own tools. */
import { createAgentUIStream, isToolUIPart, type ModelMessage, readUIMessageStream, type UIMessage } from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Planner } from '#core';
import { memoryJournal } from '#journal';
import { agent, agentTool, clientTool } from '#pilotage';
import { createRuntime } from '#runtime';
import { asAgent } from '#server/ai-sdk';
import { call, finish, named, parallel, script } from '../kit/decisions.ts';
import { scenario } from '../kit/sdk-agent.ts';
import { ANY, make } from '../kit/tools.ts';

type Sdk = ReturnType<typeof asAgent>;
type Generated = Awaited<ReturnType<Sdk['generate']>>;
type Output = { type: 'text'; value: string } | { type: 'error-text'; value: string };

/** A conversation, as a program keeps it. */
class Talk {
  readonly messages: ModelMessage[] = [];
  readonly #agent: Sdk;

  constructor(of: Sdk) {
    this.#agent = of;
  }

  async go(...more: ModelMessage[]): Promise<Generated> {
    this.messages.push(...more);
    const result = await this.#agent.generate({ messages: this.messages });
    this.messages.push(...result.responseMessages);
    return result;
  }

  say(content: string): Promise<Generated> {
    return this.go({ role: 'user', content });
  }
}

const yes = ({ content }: Generated, approved = true): ModelMessage => ({
  role: 'tool',
  content: content.flatMap((part) =>
    part.type === 'tool-approval-request'
      ? [{ type: 'tool-approval-response' as const, approvalId: part.approvalId, approved, reason: 'because' }]
      : [],
  ),
});

const picked = ({ toolCalls }: Generated, output: Output = { type: 'text', value: 'red' }): ModelMessage => ({
  role: 'tool',
  content: toolCalls.map(({ toolCallId, toolName }) => ({ type: 'tool-result', toolCallId, toolName, output })),
});

const says = (text: string): UIMessage => ({ id: 'u1', role: 'user', parts: [{ type: 'text', text }] });

async function lastOf(of: Sdk, uiMessages: UIMessage[]): Promise<UIMessage> {
  const stream = await createAgentUIStream({ agent: of, uiMessages });
  const before = uiMessages.at(-1);
  let last: UIMessage | undefined;
  const read = readUIMessageStream({
    stream: stream as never,
    ...(before?.role === 'assistant' ? { message: structuredClone(before) } : {}),
    onError: (error) => expect(error).toBeUndefined(),
  });
  for await (const each of read) last = each;
  return last as UIMessage;
}

describe('answers to an agent of the AI SDK', () => {
  it.each([true, false])('goes on talking behind an approval that was answered (%s)', async (approved) => {
    const talk = new Talk(scenario().agent);
    const asked = await talk.say('refund A-17');
    const { text, responseMessages } = await talk.go(yes(asked, approved));
    expect(text).toBe(`A-17 is ${approved ? '' : 'not '}refunded.`);
    if (!approved)
      expect(responseMessages[0]?.content).toMatchObject([{ output: { type: 'execution-denied', reason: 'because' } }]);
    expect((await talk.say('say hi')).text).toBe('hi');
  });

  it("goes on with the run when the client's own tool has a result", async () => {
    const { agent: made, runtime } = scenario();
    const talk = new Talk(made);
    const asked = await talk.say('pick a color');
    expect(asked.finishReason).toBe('tool-calls');
    const answered = await talk.go(picked(asked));
    expect([answered.text, answered.toolResults]).toEqual(['You picked "red".', []]);
    expect(await runtime.list()).toMatchObject([{ status: 'finished' }]);
    expect((await talk.say('say hi')).text).toBe('hi');
  });

  it("takes an error of the client's tool, and its no", async () => {
    for (const output of [{ type: 'error-text', value: 'It broke.' }, { type: 'execution-denied' }]) {
      const talk = new Talk(scenario().agent);
      const asked = await talk.say('pick a color');
      expect((await talk.go(picked(asked, output as Output))).text).toBe('No color was picked.');
      expect((await talk.say('say hi')).text).toBe('hi');
    }
  });

  it("createAgentUIStream goes on with the message when the client's tool has its output", async () => {
    const { agent: made, runtime } = scenario();
    const user = says('pick a color');
    const asked = await lastOf(made, [user]);
    const answered = structuredClone(asked);
    for (const part of answered.parts)
      if (isToolUIPart(part)) Object.assign(part, { state: 'output-available', output: { name: 'red' } });
    const told = await lastOf(made, [user, { ...answered, id: 'a1' }]);
    expect(told.parts.at(-1)).toMatchObject({ type: 'text', text: 'You picked {"name":"red"}.' });
    expect(await runtime.list()).toHaveLength(1);
    expect((await lastOf(made, [user, told, says('say hi')])).parts.at(-1)).toMatchObject({ text: 'hi' });
  });

  it('the same answer again tells the same, also at the same moment, and does nothing twice', async () => {
    const { agent: made, effects, runtime } = scenario();
    const prompt: ModelMessage[] = [{ role: 'user', content: 'refund A-17' }];
    const asked = await made.generate({ messages: prompt });
    const messages = [...prompt, ...asked.responseMessages, yes(asked)];
    const both = await Promise.all([made.generate({ messages }), made.generate({ messages })]);
    const told = [...both, await made.generate({ messages })];
    for (const { text, responseMessages, finishReason } of told)
      expect([text, responseMessages, finishReason]).toEqual(['A-17 is refunded.', told[0]?.responseMessages, 'stop']);
    expect([effects.count('refund'), (await runtime.list()).length]).toEqual([1, 1]);
    const no = [...prompt, ...asked.responseMessages, yes(asked, false)];
    await expect(made.generate({ messages: no })).rejects.toMatchObject({ code: 'pause_not_found' });
    const color = await made.generate({ prompt: 'pick a' });
    const pick: ModelMessage[] = [{ role: 'user', content: 'pick a' }, ...color.responseMessages];
    const red = { messages: [...pick, picked(color)] };
    expect([(await made.generate(red)).text, (await made.generate(red)).text]).toEqual(
      Array(2).fill('You picked "red".'),
    );
    const big = await made.generate({ prompt: 'pick a' });
    const value = 'x'.repeat(1_000_000);
    const long = [
      { role: 'user' as const, content: 'pick a' },
      ...big.responseMessages,
      picked(big, { type: 'text', value }),
    ];
    for (let time = 0; time < 2; time += 1) expect((await made.generate({ messages: long })).finishReason).toBe('stop');
    const blue = { messages: [...pick, picked(color, { type: 'text', value: 'blue' })] };
    await expect(made.generate(blue)).rejects.toThrow('was answered before, with another result');
  });

  it('of two answers at one moment, or one behind the end of the run, the second is refused', async () => {
    const { agent: made, runtime } = scenario();
    const asked = await made.generate({ prompt: 'pick a' });
    const messages = (value: string): ModelMessage[] => [
      { role: 'user', content: 'pick a' },
      ...asked.responseMessages,
      picked(asked, { type: 'text', value }),
    ];
    const both = await Promise.allSettled(['red', 'blue'].map((value) => made.generate({ messages: messages(value) })));
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    for (const words of ['refund A-17', 'pick a']) {
      const left = await made.generate({ prompt: words });
      const [waiting] = await runtime.waiting();
      const run = runtime.run(waiting?.run ?? '');
      await run.cancel();
      await run.result();
      const late = [...left.responseMessages, words === 'pick a' ? picked(left) : yes(left)];
      await expect(made.generate({ messages: late })).rejects.toMatchObject({ code: 'pause_not_found' });
    }
  });

  it('tells what came of other calls since: one that somebody else has answered', async () => {
    const { agent: made, effects, runtime } = scenario();
    const talk = new Talk(made);
    const asked = await talk.say('refund A-17 and B-18');
    const [first, second] = asked.content.filter((part) => part.type === 'tool-approval-request');
    const [waiting] = await runtime.waiting();
    const run = runtime.run(waiting?.run ?? '');
    await run.approve(second?.approvalId);
    for await (const { type } of run.events({ overPauses: true })) if (type === 'tool.completed') break;
    const { content } = yes(asked) as Extract<ModelMessage, { role: 'tool' }>;
    const mine = content.filter((part) => 'approvalId' in part && part.approvalId === first?.approvalId);
    expect((await talk.go({ role: 'tool', content: mine })).text).toBe('A-17 is refunded. B-18 is refunded.');
    expect([effects.count('refund'), (await talk.say('say hi')).text]).toEqual([2, 'hi']);
  });

  it('takes an approval and a result one after another, or both at once, in one step', async () => {
    for (const isAtOnce of [false, true]) {
      const pay = make('pay', () => 'paid', { needsApproval: true });
      const pick = clientTool({ name: 'pick', description: 'Picks.', effect: 'read', inputSchema: ANY });
      const planner = script(parallel(named('pay', 'pick', 'pay')), finish('done'));
      const made = agent({ name: 'a', planner, tools: [pay, pick] });
      const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
      onTestFinished(() => runtime.close());
      const talk = new Talk(asAgent(runtime, { agent: made }));
      const asked = await talk.say('go');
      const answers = [yes(asked), picked({ ...asked, toolCalls: asked.toolCalls.slice(1, 2) })].flatMap(
        ({ content }) => content as Extract<ModelMessage, { role: 'tool' }>['content'],
      );
      const turns = isAtOnce ? [answers] : answers.map((each) => [each]);
      const texts: string[] = [];
      for (const content of turns) texts.push((await talk.go({ role: 'tool', content })).text);
      expect(texts).toEqual([...turns.slice(1).map(() => ''), 'done']);
      expect((await talk.say('go')).finishReason).toBe('tool-calls');
      expect(await runtime.list()).toHaveLength(2);
    }
  });

  it('takes answers to what a task asks, and the same again', async () => {
    let paid = 0;
    const pay = make('pay', () => (paid += 1), { needsApproval: true, effect: 'once' });
    const clerk = agent({ name: 'clerk', planner: script(call('pay'), finish('paid')), tools: [pay] });
    const boss = agent({
      name: 'boss',
      planner: script(call('clerk', { input: 'pay' }), finish('all is paid')),
      tools: [agentTool(clerk, { description: 'Pays.' })],
    });
    const runtime = createRuntime({ agents: [boss, clerk], journal: memoryJournal() });
    onTestFinished(() => runtime.close());
    const talk = new Talk(asAgent(runtime, { agent: boss }));
    const asked = await talk.say('go');
    const messages = [...talk.messages, yes(asked)];
    expect((await talk.go(yes(asked))).text).toBe('all is paid');
    expect((await asAgent(runtime, { agent: boss }).generate({ messages })).text).toBe('all is paid');
    expect([paid, (await talk.say('go')).finishReason]).toEqual([1, 'tool-calls']);
  });

  it('knows the calls of two turns apart that the model has given one id, and gives the model its own ids back', async () => {
    const heard: unknown[] = [];
    const planner: Planner = {
      name: 'counts anew',
      next: ({ trajectory, history = [] }) => {
        if (trajectory.count > 0)
          return { kind: 'finish', reason: 'goal', payload: JSON.stringify(trajectory.step(0)?.calls[0]?.outcome) };
        heard.push(
          history.flatMap(({ parts = [] }) => parts.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : []))),
        );
        return call('pick', {}, 'call_1');
      },
    };
    const pick = clientTool({ name: 'pick', description: 'Picks.', effect: 'read', inputSchema: ANY });
    const runtime = createRuntime({ agents: [agent({ name: 'a', planner, tools: [pick] })], journal: memoryJournal() });
    onTestFinished(() => runtime.close());
    const made = asAgent(runtime, { agent: 'a' });
    const [one, two] = [new Talk(made), new Talk(made)];
    const [first, other] = [await one.say('pick'), await two.say('pick')];
    expect((await one.go(picked(first))).text).toContain('red');
    const second = await one.say('pick again');
    expect(second.toolCalls[0]?.toolCallId).not.toBe(first.toolCalls[0]?.toolCallId);
    expect((await one.go(picked(second, { type: 'text', value: 'blue' }))).text).toContain('blue');
    expect((await two.go(picked(other, { type: 'text', value: 'green' }))).text).toContain('green');
    expect(heard).toEqual([[], [], ['call_1', 'call_1']]);
  });

  it('takes no answer for the run of somebody else, nor one that the messages do not show to be asked', async () => {
    const { agent: made, runtime } = scenario();
    const talk = new Talk(made);
    const asked = await talk.say('refund A-17');
    const theirs = asAgent(runtime, { agent: 'scenario', identity: { tenant: 'local', user: 'eve' } });
    const messages = [...talk.messages, yes(asked)];
    await expect(theirs.generate({ messages })).rejects.toMatchObject({ code: 'pause_not_found' });
    await expect(made.generate({ messages: [yes(asked)] })).rejects.toMatchObject({ code: 'pause_not_found' });
    const result = picked(await new Talk(made).say('weather in Oslo'));
    await expect(made.generate({ messages: [result] })).rejects.toMatchObject({ code: 'invalid_config' });
    expect(await runtime.waiting()).toHaveLength(1);
  });
});
