/** A model, or its provider, that does not want to answer: the next model is asked, and with none left the run ends as `refused`. */
import { APICallError } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { createModelRegistry } from '#model';
import { finish } from '#planners/finish';
import { htn, htnDomain } from '#planners/htn';
import { fillWith } from '#planners/htn-model';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { type ScriptedReply, scriptedModel } from '#testing';
import { agent, agentTool } from '#tools';
import { only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { httpError } from '../kit/model.ts';
import { openJournal } from '../kit/sqlite.ts';
import { start, world } from '../kit/world.ts';
import { good, named, play, playStreamed, wordsOf } from './played.ts';

const refusing = (text = 'I cannot help with that.'): ScriptedReply => ({ text, finish: 'content-filter' });
const said = (text: string): ScriptedReply => ({ text });

/** As Azure refuses a prompt. */
function filtered(): APICallError {
  const body = {
    error: {
      message: 'The response was filtered due to the prompt.',
      code: 'content_filter',
      innererror: { content_filter_result: { hate: { filtered: false }, violence: { filtered: true } } },
    },
  };
  return new APICallError({
    message: body.error.message,
    url: 'https://azure.test/',
    requestBodyValues: {},
    statusCode: 400,
    responseBody: JSON.stringify(body),
    data: body,
    isRetryable: false,
  });
}

describe('one model that refuses', () => {
  it('ends the run as refused, with what was said, and is asked once', async () => {
    const model = named('m', [refusing()]);
    const { result, steps, events } = await play({ model });
    expect(result).toMatchObject({
      status: 'finished',
      reason: 'refused',
      answer: 'I cannot help with that.',
      metadata: { stop_reason: 'content-filter', refusal: { model: 'm' } },
    });
    expect(steps).toEqual([]);
    expect(model.calls).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ type: 'planner.finish', reason: 'refused' });
  });

  it('has no call carried out, however whole it is', async () => {
    const { result, events } = await play({ model: named('m', [{ ...good(), finish: 'content-filter' }]) });
    expect(result).toMatchObject({ reason: 'refused' });
    expect(only(events, 'tool.invoked')).toEqual([]);
  });

  it('by an error in place of a reply: no second request, and no other response format', async () => {
    const model = named('m', [{ error: filtered() }]);
    const { result } = await play({ model, react: { answerSchema: { type: 'object' } } });
    expect(result).toMatchObject({
      reason: 'refused',
      metadata: {
        refusal: { model: 'm', category: 'violence', message: 'The response was filtered due to the prompt.' },
      },
    });
    expect(model.calls).toHaveLength(1);
  });

  it('by an error inside its stream, which passes at no second try', async () => {
    const model = named('m', [{ text: 'The', error: filtered(), afterDeltas: 1 }]);
    expect((await playStreamed({ model })).result).toMatchObject({ reason: 'refused' });
    expect(model.calls).toHaveLength(1);
  });

  it('after calls were made: the run ends as refused all the same', async () => {
    const { result, steps } = await play({ model: named('m', [good(), refusing()]) });
    expect(steps).toHaveLength(1);
    expect(result).toMatchObject({ reason: 'refused' });
  });
});

describe('with others to ask', () => {
  it.each([
    ['a reply', refusing()],
    ['an error', { error: filtered() }],
  ] as const)('%s that refuses goes to the next model, which is told nothing of it', async (_, refusal) => {
    const first = named('first', [refusal]);
    const second = named('second', [said('Here it is.')]);
    const { result, steps, events } = await play({ model: [first, second] });
    expect(result).toMatchObject({ reason: 'goal', answer: 'Here it is.' });
    expect(first.calls).toHaveLength(1);
    expect(second.calls[0]?.prompt).toEqual(first.calls[0]?.prompt);
    expect(steps).toMatchObject([{ error: { code: 'reply_refused', message: expect.stringContaining('first') } }]);
    expect(only(events, 'planner.decision')[0]?.rejected).toMatchObject({ code: 'reply_refused' });
  });

  it('all of them are asked once, and the last one ends the run', async () => {
    const models = ['a', 'b', 'c'].map((name) => named(name, [refusing(`No, says ${name}.`)]));
    const { result, steps } = await play({ model: models });
    expect(models.map(({ calls }) => calls.length)).toEqual([1, 1, 1]);
    expect(result).toMatchObject({ reason: 'refused', answer: 'No, says c.', metadata: { refusal: { model: 'c' } } });
    expect(steps).toHaveLength(2);
  });

  it('later steps begin with the first again, whose request is another one then', async () => {
    const first = named('first', [refusing(), said('done')]);
    const second = named('second', [good()]);
    const { result } = await play({ model: [first, second] });
    expect(result).toMatchObject({ answer: 'done' });
    expect(first.calls[1]?.prompt.length).toBeGreaterThan(first.calls[0]?.prompt.length ?? 0);
    expect(first.calls[1]?.prompt.map(wordsOf).join('\n')).not.toContain('I cannot help');
  });

  it('while the second is away the first is not asked again', async () => {
    const first = named('first', [refusing()]);
    const second = named('second', [{ error: httpError(503) }, said('Here it is.')]);
    const made = world({ planner: react({ model: [first, second], retries: 0 }) });
    const run = await start(made);
    const ended = run.result();
    for (let tick = 0; tick < 200 && second.calls.length < 2; tick += 1) {
      made.clock.advance(60_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await ended).toMatchObject({ answer: 'Here it is.' });
    expect(first.calls).toHaveLength(1);
  });

  it('nor is it by a process that takes the run over', async () => {
    const path = temporaryFile();
    const asked = Promise.withResolvers<void>();
    const hangs = named('second', () => {
      asked.resolve();
      return { stall: true };
    });
    const before = createRuntime({
      planner: react({ model: [named('first', [refusing()]), hangs] }),
      journal: openJournal(path),
    });
    await before.start('q', { identity: local('ana', { run: 'r1' }) });
    await asked.promise;
    await before.close();
    const first = named('first', []);
    const second = named('second', [said('Here it is.')]);
    const after = createRuntime({ planner: react({ model: [first, second] }), journal: openJournal(path) });
    await after.run('r1').resume();
    expect(await after.run('r1').result()).toMatchObject({ answer: 'Here it is.' });
    expect([first.calls.length, second.calls.length]).toEqual([0, 1]);
    await after.close();
  });

  it('the fallback planner is asked when no model is left, and not before', async () => {
    const fallback = finish({ payload: 'by the fallback' });
    const first = named('first', [refusing()]);
    expect((await play({ model: first, react: { fallback } })).result).toMatchObject({ payload: 'by the fallback' });
    const second = named('second', [said('mine')]);
    const models = [named('first', [refusing()]), second];
    expect((await play({ model: models, react: { fallback } })).result).toMatchObject({ answer: 'mine' });
  });

  it('counts as no success of the model', async () => {
    const registry = createModelRegistry([named('first', [refusing()]), named('second', [said('x')])]);
    await play({ model: registry });
    expect(registry.measures('first').successRate).toBeLessThan(registry.measures('second').successRate);
  });

  it('a model that goes on with a reply, and then refuses, leaves the rest to the next', async () => {
    const first = named('first', [{ text: 'One, ', finish: 'length' }, refusing('No.')]);
    const second = named('second', [said('two.')]);
    const { result } = await play({ model: [first, second] });
    expect(result).toMatchObject({ reason: 'goal', answer: 'One, two.' });
    expect(second.calls[0]?.prompt).toEqual(first.calls[1]?.prompt);
  });
});

it('a task that is refused tells its owner so, and a tool that is an agent too', async () => {
  const sub = agent({ name: 'sub', planner: react({ model: named('sub', [refusing()]) }) });
  const ask = agentTool(sub, { description: 'Asks the other one.' });
  const model = named('m', [{ calls: [{ tool: 'sub', args: { input: 'x' } }] }, said('It does not want to.')]);
  const { steps, result } = await play({ model, tools: [ask] });
  expect(steps).toMatchObject([
    {
      calls: [
        {
          outcome: {
            kind: 'error',
            error: {
              code: 'refused',
              message: 'The task ended with refused. Its model refused: I cannot help with that.',
            },
          },
        },
      ],
    },
  ]);
  expect(result).toMatchObject({ reason: 'goal' });
});

it('what the owner of a refused task is told of its words never ends in half of a letter', async () => {
  const words = `${'n'.repeat(499)}😀 and more`;
  const sub = agent({ name: 'sub', planner: react({ model: named('sub', [refusing(words)]) }) });
  const model = named('m', [{ calls: [{ tool: 'sub', args: { input: 'x' } }] }, said('It does not want to.')]);
  await play({ model, tools: [agentTool(sub, { description: 'Asks the other one.' })] });
  const sent = JSON.stringify(model.calls[1]?.prompt);
  expect(sent).toContain('n'.repeat(499));
  expect(sent).not.toContain('\\ud83d');
});

describe('planners that ask for more than an answer', () => {
  const plan = said(JSON.stringify({ steps: [{ id: 'end', type: 'finish', input: 'planned' }] }));

  it.each([false, true])('pipeline asks the next model, and repairs nothing (streamed: %s)', async (stream) => {
    const [first, second] = [named('first', [refusing()]), named('second', [said('{}')])];
    const planner = pipeline({ model: [first, second], stream, repairRetries: 2 });
    const run = await start(world({ planner }));
    await run.result();
    expect(first.calls).toHaveLength(1);
    expect(second.calls.length).toBeGreaterThan(0);
  });

  it('pipeline takes the plan of the next model', async () => {
    const run = await start(
      world({ planner: pipeline({ model: [named('first', [{ error: filtered() }]), named('second', [plan])] }) }),
    );
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: 'planned' });
  });

  it.each([
    ['a reply', refusing()],
    ['an error', { error: filtered() }],
  ] as const)('pipeline ends as refused when all refuse: %s', async (_, refusal) => {
    const models = [named('first', [refusal]), named('second', [refusal])];
    const run = await start(world({ planner: pipeline({ model: models }) }));
    expect(await run.result()).toMatchObject({ reason: 'refused', metadata: { refusal: { model: 'second' } } });
    expect(models.map(({ calls }) => calls.length)).toEqual([1, 1]);
  });

  it.each([
    ['a reply', refusing('No steps for that.')],
    ['an error', { error: filtered() }],
  ] as const)('htn whose leaf is filled by a model ends as refused, and does not ask again: %s', async (_, refusal) => {
    const model = scriptedModel([refusal]);
    const domain = htnDomain({ operators: {}, tasks: { say: [] } });
    const planner = htn({
      domain,
      state: () => ({}),
      todo: () => [['say']],
      step: ([toolId]) => ({ type: 'tool', toolId }),
      fill: fillWith(model),
    });
    const run = await start(world({ planner }));
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'refused',
      metadata: { refusal: { model: 'scripted' } },
    });
    expect(model.calls).toHaveLength(1);
  });
});
