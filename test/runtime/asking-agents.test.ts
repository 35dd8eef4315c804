/** A sub-agent that asks its user: its question goes up, the answer goes down, and a call ends it. On SQLite. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Json, PlannerFunction } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import { createRuntime, type Run, type Runtime, type RuntimeOptions } from '#runtime';
import { type ScriptedModel, type ScriptedReply, scriptedModel } from '#testing';
import { type Agent, agent, agentTool } from '#tools';
import { call, finish } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { textOf, texts } from '../kit/messages.ts';
import { awaits, PARENT, spawns, thenTell } from '../kit/tasks.ts';
import { until } from '../kit/waiting.ts';

/** Processes over one file, one after another. */
function machine(): (options: RuntimeOptions) => Runtime {
  const path = temporaryFile();
  return (options) => {
    const journal = sqliteJournal({ path });
    const runtime = createRuntime({ ...options, journal });
    onTestFinished(async () => {
      await runtime.close();
      await journal.close();
    });
    return runtime;
  };
}

const says = (text: string): ScriptedReply => ({ text });
const calls = (tool: string, args: Json, text = ''): ScriptedReply => ({
  text,
  calls: [{ tool, args: args as Record<string, Json> }],
});
const ends = (answer: Json): ScriptedReply => calls('_finish', { answer });

function booker(replies: readonly ScriptedReply[], options: object = { converse: true }): [ScriptedModel, Agent] {
  const model = scriptedModel(replies);
  return [model, agent({ name: 'booker', planner: react({ model, ...options }) })];
}

const asks = (child: Agent) => agentTool(child, { description: 'Books a trip.' });
const parentOf = (child: Agent) =>
  agent({ name: 'desk', planner: thenTell(call('booker', { input: 'a trip' })), tools: [asks(child)] });

const pausesOf = async (run: Run) => {
  const result = await run.result();
  return result.status === 'paused' ? result.pauses : result;
};
const payloadOf = async (run: Run) => {
  const result = await run.result();
  return result.status === 'finished' ? result.payload : result;
};
const declared = ({ calls: requests }: ScriptedModel) =>
  requests.map(({ tools = [] }) => tools.map(({ name }) => name));
const system = ({ calls: requests }: ScriptedModel) => textOf(requests[0]?.prompt[0] as never);

describe('a sub-agent that converses', () => {
  it('asks through the run that called it, hears the answer as its user’s message, and ends by a call', async () => {
    const [model, child] = booker([says('Which city?'), ends('Booked for Oslo.')]);
    const runtime = machine()({ agents: [parentOf(child)] });
    const run = await runtime.start('plan my week', { identity: PARENT });
    const asking = { run: 'p.0.0', reason: 'await_input', text: 'Which city?' };
    expect(await pausesOf(run)).toMatchObject([asking]);
    const events = await collect(run);
    expect(events.find(({ type }) => type === 'task.paused')).toMatchObject({ pauses: [asking] });
    expect(events.at(-1)).toMatchObject({ type: 'run.paused', pauses: [asking] });
    await run.resume({ payload: { message: 'Oslo' } });
    expect(await payloadOf(run)).toBe('Booked for Oslo.');
    expect(texts(model.calls[1]?.prompt ?? [], 'user')).toEqual(['a trip', 'Oslo']);
    expect(texts(model.calls[1]?.prompt ?? [], 'assistant')).toEqual(['Which city?']);
    expect(declared(model)).toEqual([['_finish'], ['_finish']]);
    expect(system(model)).toContain('call _finish with the answer: only that ends the run');
    expect(system(model)).not.toContain('that answer ends the run');
  });

  it('asks as often as it likes, through any run above, in any process', async () => {
    const next = machine();
    const [, child] = booker([says('Which city?'), says('Which day?'), ends('Booked.')]);
    const middle = parentOf(child);
    const top = agent({
      name: 'top',
      planner: thenTell(call('desk', { input: 'a trip' })),
      tools: [agentTool(middle, { description: 'Plans.' })],
    });
    const first = next({ agents: [top] });
    const run = await first.start('plan', { identity: PARENT });
    expect(await pausesOf(run)).toMatchObject([{ run: 'p.0.0.0.0', text: 'Which city?' }]);
    await first.close();
    const second = next({ agents: [top] });
    await second.run('p').resume({ payload: { message: 'Oslo' } });
    expect(await pausesOf(second.run('p'))).toMatchObject([{ run: 'p.0.0.0.0', text: 'Which day?' }]);
    expect(await pausesOf(second.run('p.0.0'))).toMatchObject([{ run: 'p.0.0.0.0', text: 'Which day?' }]);
    await second.run('p.0.0').steer('USER_MESSAGE', { message: 'Friday' });
    // The run at the top hears of it through the one below.
    await until(async () => (await second.run('p').result()).status === 'finished');
    expect(await payloadOf(second.run('p'))).toBe('Booked.');
  });

  it('two that ask are answered by the token alone, and whoever names none is told of both', async () => {
    const replies = ({ prompt }: { prompt: readonly unknown[] }): ScriptedReply =>
      prompt.length > 2 ? ends('Booked.') : says('Which city?');
    const child = agent({ name: 'booker', planner: react({ model: scriptedModel(replies), converse: true }) });
    const planner = thenTell({
      kind: 'call_parallel',
      branches: ['boots', 'hats'].map((input) => ({ tool: 'booker', args: { input } })),
    });
    const runtime = machine()({ agents: [agent({ name: 'desk', planner, tools: [asks(child)] })] });
    const run = await runtime.start('plan', { identity: PARENT });
    await until(async () => [await pausesOf(run)].flat().length === 2);
    for (const answered of [run.resume({ payload: { message: 'Oslo' } }), run.approve()]) {
      await expect(answered).rejects.toMatchObject({
        code: 'pause_not_found',
        message: expect.stringMatching(/as 2 are open\. They are pause_\w+ \(await_input\), pause_/),
      });
    }
  });

  it('asks as a task that was spawned, and its answer comes back to the run that awaits it', async () => {
    const model = scriptedModel([says('Which city?'), ends({ city: 'Oslo' })]);
    const talks = react({ model, converse: true });
    const planner: PlannerFunction = (run, signal) => {
      if (run.task !== undefined) return talks.next({ ...run, streaming: false }, signal);
      const scripted = [spawns('a trip'), awaits('p.0.0')][run.trajectory.count];
      return scripted ?? finish(run.trajectory.step(1)?.calls[0]?.outcome.kind === 'value' ? 'told' : 'not told');
    };
    const runtime = machine()({ planner });
    const run = await runtime.start('plan', { identity: PARENT });
    expect(await pausesOf(run)).toMatchObject([{ run: 'p.0.0', text: 'Which city?' }]);
    await run.resume({ payload: { message: 'Oslo' } });
    expect(await payloadOf(run)).toBe('told');
    expect(await payloadOf(runtime.run('p.0.0'))).toEqual({ city: 'Oslo' });
  });

  it.each(['native', 'text'] as const)('has the form of its answer in that call, with %s calls', async (toolCalls) => {
    const answerSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const end = (answer: Json): ScriptedReply =>
      toolCalls === 'native'
        ? ends(answer)
        : says(`\`\`\`json\n${JSON.stringify({ tool: '_finish', args: { answer } })}\n\`\`\``);
    const scripted = scriptedModel([says('{"city": "Oslo?"}'), end({ town: 'Oslo' }), end({ city: 'Oslo' })]);
    const planner = react({ model: { model: scripted, toolCalls }, converse: true, answerSchema });
    const runtime = machine()({ agents: [parentOf(agent({ name: 'booker', planner }))] });
    const run = await runtime.start('plan', { identity: PARENT });
    // A text is a question, whatever it looks like.
    expect(await pausesOf(run)).toMatchObject([{ text: '{"city": "Oslo?"}' }]);
    await run.resume({ payload: { message: 'yes' } });
    expect(await payloadOf(run)).toEqual({ city: 'Oslo' });
    const requests = scripted.calls;
    expect(requests.every(({ responseFormat }) => responseFormat === undefined)).toBe(true);
    const schema = '"city":{"type":"string"}';
    const shown = toolCalls === 'native' ? JSON.stringify(requests[0]?.tools) : system(scripted);
    expect(shown).toContain(schema);
    expect(system(scripted)).not.toContain('Your answer is one JSON value');
    // The reminder after a call that was not accepted does not say that no call is needed.
    const reminder = texts(requests[2]?.prompt ?? [], 'user').at(-1);
    expect(reminder).toContain('make that call again');
  });

  it('goes to the answer of its question alone when two ask, by the token', async () => {
    const reply = (request: { prompt: unknown }): ScriptedReply => {
      const said = JSON.stringify(request.prompt);
      const [one] = ['first', 'second'].filter((which) => said.includes(`${which} trip`));
      return said.includes('Which city')
        ? ends(said.includes('Oslo') ? `${one}: Oslo` : `${one}: Rome`)
        : says(`Which city, ${one}?`);
    };
    const child = agent({ name: 'booker', planner: react({ model: scriptedModel(reply), converse: true }) });
    const branches = ['first', 'second'].map((which) => ({ tool: 'booker', args: { input: `${which} trip` } }));
    const planner: PlannerFunction = (run) =>
      run.trajectory.count === 0
        ? { kind: 'call_parallel', branches }
        : finish(
            run.trajectory.step(0)?.calls.map(({ outcome }) => (outcome.kind === 'value' ? outcome.value : null)) ?? [],
          );
    const runtime = machine()({ planner, tools: [asks(child)] });
    const run = await runtime.start('plan', { identity: PARENT });
    const pauses = await pausesOf(run);
    if (!Array.isArray(pauses)) throw new Error('The run is not paused.');
    expect(pauses.map(({ text }) => text)).toEqual(['Which city, first?', 'Which city, second?']);
    await run.resume({ token: pauses[1].token, payload: { message: 'Rome' } });
    await run.resume({ token: pauses[0].token, payload: { message: 'Oslo' } });
    expect(await payloadOf(run)).toEqual(['first: Oslo', 'second: Rome']);
  });
});

describe('what does not ask', () => {
  it('a sub-agent that does not converse ends with its text, and is told of no call to end', async () => {
    const [model, child] = booker([says('Which city?')], {});
    const run = await machine()({ agents: [parentOf(child)] }).start('plan', { identity: PARENT });
    expect(await payloadOf(run)).toBe('Which city?');
    expect(declared(model).flat()).not.toContain('_finish');
    expect(system(model)).not.toContain('_finish');
  });

  it('a run of a conversing agent that is no task goes on for as long as its user writes', async () => {
    const [model, alone] = booker([says('Which city?'), says('And the day?')]);
    const run = await machine()({ agents: [alone] }).start('a trip', { identity: PARENT });
    expect(await pausesOf(run)).toMatchObject([{ run: 'p', text: 'Which city?' }]);
    await run.resume({ payload: { message: 'Oslo' } });
    expect(await pausesOf(run)).toMatchObject([{ run: 'p', text: 'And the day?' }]);
    expect(declared(model).flat()).not.toContain('_finish');
    expect(system(model)).not.toContain('_finish');
  });
});
