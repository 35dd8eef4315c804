import { describe, expect, it } from 'vitest';
import { MAX_TASK_DEPTH } from '#core';
import { createModelRegistry } from '#model';
import type { Planner } from '#pilotage';
import { plannerRegistry, shippedPlanners } from '#pilotage/config';
import { openaiServer, runView, type ScriptedModel, scriptedModel, toolView } from '#testing';
import { ask } from '../kit/ask.ts';
import { ready, refusalOf } from '../kit/config.ts';
import { stepOfMove } from '../kit/steps.ts';

const model = scriptedModel([]);
const plan = { planId: 'p', steps: [{ id: 'end', type: 'finish', input: 'over' }] };
const reactWith = async (part: object): Promise<Planner> =>
  (await ready({ planner: { model, ...part } })).runtime.planner as Planner;

/** What the model is sent by a planner of this part. */
async function requested(part: object, view = runView()): Promise<ScriptedModel['calls'][number]> {
  const asked = scriptedModel([{ text: 'done' }]);
  await ask(await reactWith({ model: asked, ...part }), view);
  const [request] = asked.calls;
  if (request === undefined) throw new Error('The model was not asked.');
  return request;
}

describe('the planner of a configuration', () => {
  it('RG-08 is react when no driver is named', async () => {
    expect(await reactWith({})).toMatchObject({ name: 'react' });
    expect(await reactWith({ driver: 'react' })).toMatchObject({ name: 'react' });
    expect(await refusalOf({})).toMatchObject({ code: 'invalid_config', data: { path: 'planner.model' } });
  });

  it('RG-20 may be the deterministic one, with steps that are functions or objects', async () => {
    const steps = [{ do: 'call', tool: 'look', args: {} }, () => ({ kind: 'finish', reason: 'goal' })];
    const { runtime } = await ready({ planner: { driver: 'deterministic', steps } });
    const planner = runtime.planner as Planner;
    expect(planner.name).toBe('deterministic');
    expect((await ask(planner, runView())).decision).toEqual({ kind: 'call_tool', tool: 'look', args: {} });
  });

  it('RG-20 may be finish, with its options', async () => {
    const { runtime } = await ready({ planner: { driver: 'finish', payload: { n: 1 }, reason: 'no_path' } });
    const { decision } = await ask(runtime.planner as Planner, runView());
    expect(decision).toMatchObject({ kind: 'finish', reason: 'no_path', payload: { n: 1 } });
  });

  it('RG-20 may be graph: a plan, or a function that makes one', async () => {
    for (const given of [plan, () => plan]) {
      const { runtime } = await ready({ planner: { driver: 'graph', name: 'mine', plan: given, maxPlanSteps: 0 } });
      const { decision } = await ask(runtime.planner as Planner, runView());
      expect(runtime.planner).toMatchObject({ name: 'mine' });
      expect(decision).toMatchObject({ kind: 'call_parallel', plan: 'p', branches: [{ id: 'end', args: 'over' }] });
    }
    const missing = await refusalOf({ planner: { driver: 'graph' } });
    expect(missing).toMatchObject({ code: 'invalid_config', data: { path: 'planner.plan' } });
  });

  it('RG-20 may be pipeline, whose models may be servers; the limit of steps in a plan is not that of the run', async () => {
    const long = { planId: 'long', steps: ['a', 'b', 'c'].map((id) => ({ id, type: 'message', input: id })) };
    const asked = scriptedModel([{ calls: [{ tool: 'submit_plan', args: long }] }]);
    const part = { driver: 'pipeline', model: asked, maxSteps: 2 };
    const { runtime } = await ready({ planner: part });
    expect(runtime).toMatchObject({ limits: { steps: 2 }, planner: { name: 'pipeline' } });
    const { decision } = await ask(runtime.planner as Planner, runView());
    expect(decision).toMatchObject({ plan: 'long', branches: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] });
    const short = scriptedModel([{ calls: [{ tool: 'submit_plan', args: long }] }]);
    const limited = { ...part, model: short, repairRetries: 0, modelRetries: 0, maxPlanSteps: 2 };
    const { runtime: other } = await ready({ planner: limited });
    expect((await ask(other.planner as Planner, runView())).decision).toMatchObject({
      kind: 'finish',
      reason: 'no_path',
    });
    const missing = await refusalOf({ planner: { driver: 'pipeline' } });
    expect(missing).toMatchObject({ code: 'invalid_config', data: { path: 'planner.model' } });
  });

  it('RG-07, RG-20 may be one of the program: the very instance that its factory gives, without what is not its own', async () => {
    const planners = shippedPlanners();
    const house: Planner = { name: 'house', next: () => ({ kind: 'finish', reason: 'goal' }) };
    const seen: unknown[] = [];
    planners.register('house', (options) => {
      seen.push(options);
      return house;
    });
    const { runtime } = await ready({ planner: { driver: 'house', maxSteps: 3, rules: ['a'] } }, { planners });
    expect(runtime.planner).toBe(house);
    expect(seen).toEqual([{ rules: ['a'] }]);
  });

  it('may be a planner, or a function', async () => {
    const house: Planner = { name: 'house', next: () => ({ kind: 'finish', reason: 'goal' }) };
    expect((await ready({ planner: house })).runtime.planner).toBe(house);
    const { runtime } = await ready({ planner: function mine() {} });
    expect(runtime.planner).toMatchObject({ name: 'mine' });
  });

  it('RG-04 names the drivers that there are', async () => {
    const error = await refusalOf({ planner: { driver: 'ract' } });
    expect(error.code).toBe('driver_unknown');
    expect(error.message).toContain('registered: deterministic, finish, graph, pipeline, react');
    const none = await refusalOf({ planner: { driver: 'react', model } }, { planners: plannerRegistry() });
    expect(none.message).toContain('registered: <none>');
  });
});

describe('the options of react in a configuration', () => {
  it('RG-09 maxSteps is the one step limit; 0 is the default of 64, and both in one file are too many', async () => {
    const limitsOf = async (config: object): Promise<unknown> => (await ready(config)).runtime.limits;
    expect(await limitsOf({ planner: { model, maxSteps: 12 } })).toEqual({ steps: 12 });
    expect(await limitsOf({ planner: { model, maxSteps: 12 }, limits: { tokens: 9 } })).toEqual({
      steps: 12,
      tokens: 9,
    });
    expect(await limitsOf({ planner: { model, maxSteps: 0 } })).toBeUndefined();
    expect(await limitsOf({ planner: { model, maxSteps: 0 }, limits: { steps: 7 } })).toEqual({ steps: 7 });
    expect(await limitsOf({ planner: { model } })).toBeUndefined();
    expect(await refusalOf({ planner: { model, maxSteps: 3 }, limits: { steps: 3 } })).toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('limits.steps'),
    });
  });

  it.each([-1, 1.5, '3', null])('RG-09, RG-17 refuses %j for planner.maxSteps', async (maxSteps) => {
    expect(await refusalOf({ planner: { model, maxSteps } })).toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('planner.maxSteps'),
    });
  });

  it('RG-10 reasoningReplay is never when it is empty', async () => {
    const thought = {
      decision: { kind: 'call_tool', tool: 'look', args: {}, callId: 'c1' },
      reasoning: 'I ponder.',
    } as const;
    const view = runView({ tools: toolView(['look']), steps: [stepOfMove(0, thought)] });
    const prompt = async (part: object): Promise<string> => JSON.stringify((await requested(part, view)).prompt);
    expect(await prompt({ reasoningReplay: 'text' })).toContain('I ponder.');
    for (const part of [{}, { reasoningReplay: '' }, { reasoningReplay: 'never' }]) {
      expect(await prompt(part)).not.toContain('I ponder.');
    }
    expect(await refusalOf({ planner: { model, reasoningReplay: 'sometimes' } })).toMatchObject({
      code: 'invalid_config',
      message: 'planner.reasoningReplay is a string; give one of "", "never", "text".',
    });
  });

  it('RG-11 parallelToolCalls is true unless it is stated as false', async () => {
    const decided = async (part: object): Promise<unknown> => {
      const calls = [{ tool: 'look' }, { tool: 'look' }];
      const asked = scriptedModel([{ calls }]);
      return (await ask(await reactWith({ model: asked, ...part }), runView({ tools: toolView(['look']) }))).decision;
    };
    expect(await decided({})).not.toHaveProperty('concurrency');
    expect(await decided({ parallelToolCalls: undefined })).not.toHaveProperty('concurrency');
    expect(await decided({ parallelToolCalls: true })).not.toHaveProperty('concurrency');
    expect(await decided({ parallelToolCalls: false })).toMatchObject({ kind: 'call_parallel', concurrency: 1 });
    const { data } = await refusalOf({ planner: { model, parallelToolCalls: 'false' } });
    expect(data).toEqual({ path: 'planner.parallelToolCalls' });
  });

  it('RG-12 maxToolExamplesPerTool is 3 when it is 0; a negative one is refused', async () => {
    const [look] = toolView(['look']).list();
    if (look === undefined) throw new Error('There is no tool.');
    const tool = { ...look, examples: ['p', 'q', 'r', 's', 't'].map((path) => ({ path: `file-${path}` })) };
    const examples = async (part: object): Promise<number> => {
      const { tools } = await requested(part, runView({ tools: toolView([tool]) }));
      return JSON.stringify(tools).match(/file-/g)?.length ?? 0;
    };
    expect(await examples({})).toBe(3);
    expect(await examples({ maxToolExamplesPerTool: 0 })).toBe(3);
    expect(await examples({ maxToolExamplesPerTool: 1 })).toBe(1);
    expect(await examples({ maxToolExamplesPerTool: 5 })).toBe(5);
    const { data } = await refusalOf({ planner: { model, maxToolExamplesPerTool: -1 } });
    expect(data).toEqual({ path: 'planner.maxToolExamplesPerTool' });
  });

  it.each([
    'skillsContextMax',
    'absoluteMaxSpawnDepth',
    'planningHints',
    'limits',
    'memory',
    'progress',
    'migrate',
  ])('RG-13 %s belongs to the loop: no driver takes it', async (key) => {
    const options: Readonly<Record<string, object>> = {
      deterministic: { steps: [{ do: 'finish', reason: 'goal' }] },
      finish: {},
      graph: { plan },
      pipeline: { model },
      react: { model },
    };
    for (const driver of shippedPlanners().list()) {
      // What react remembers of users is its own option; how runs continue their session is not.
      const isOwn = driver === 'react' && key === 'memory';
      const error = await refusalOf({
        planner: { driver, ...options[driver], [key]: isOwn ? { strategy: 'window' } : {} },
      });
      const path = isOwn ? 'planner.memory.strategy' : `planner.${key}`;
      expect(error).toMatchObject({ code: 'invalid_config', data: { path } });
    }
  });

  it('RG-14 five skills and a depth of four tasks are fixed: a key for either is refused, whatever its value', async () => {
    expect(MAX_TASK_DEPTH).toBe(4);
    const skills = Array.from({ length: 7 }, (_, index) => ({ name: `skill-${index}`, title: 'One' }));
    const { prompt } = await requested({}, runView({ context: { skills } }));
    expect(JSON.stringify(prompt).match(/skill-\d/g)).toHaveLength(5);
    for (const key of ['skillsContextMax', 'absoluteMaxSpawnDepth']) {
      for (const value of [-1, 0]) {
        expect(await refusalOf({ planner: { model }, [key]: value })).toMatchObject({
          code: 'invalid_config',
          data: { path: key },
        });
      }
    }
  });

  it('RG-16 react without a model is refused at construction, and so is a summariser that is no model', async () => {
    await expect(shippedPlanners().resolve('react')).rejects.toMatchObject({
      code: 'invalid_config',
      data: { path: 'planner.model' },
    });
    const compaction = { budgetTokens: 100, summariser: 'a-model' };
    expect(await refusalOf({ planner: { model, compaction } })).toMatchObject({
      code: 'invalid_config',
      data: { path: 'planner.compaction.summariser' },
    });
  });

  it('RG-16, RG-20 a model that the program brings is used when the configuration names none', async () => {
    const [own, named] = [scriptedModel([{ text: 'mine' }]), scriptedModel([{ text: 'theirs' }])];
    const planners = shippedPlanners({ model: own });
    for (const part of [{}, { model: named }]) {
      const { runtime } = await ready({ planner: part }, { planners });
      await ask(runtime.planner as Planner, runView());
    }
    own.assertConsumed();
    named.assertConsumed();
  });

  it.each([
    ['planner', 5],
    ['planner', []],
    ['planner', null],
    ['planner.driver', { driver: 7 }],
    ['planner.model', { model: 'gpt-5' }],
    ['planner.model', { model: [] }],
    ['planner.model', { model: [model, model] }],
    ['planner.model[1]', { model: [model, 'gpt-5'] }],
    ['planner.model.baseUrl', { model: { baseUrl: 'here', model: 'm' } }],
    ['planner.model.model', { model: { baseUrl: 'http://127.0.0.1:1/v1' } }],
    ['planner.model', { model: { model, toolCalls: 'none' } }],
    ['planner.model.prices.output', { model: { model, prices: { input: 1, output: -1 } } }],
    ['planner.prices.input', { model, prices: { input: 'much', output: 1 } }],
    ['planner.systemPrompt', { model, systemPrompt: 5 }],
    ['planner.guidance', { model, guidance: ['be kind'] }],
    ['planner.buildPrompt', { model, buildPrompt: 'prompt' }],
    ['planner.converse', { model, converse: 'yes' }],
    ['planner.tasks', { model, tasks: 3 }],
    ['planner.answerSchema', { model, answerSchema: 'string' }],
    ['planner.answerSchema', { model, answerSchema: { check: () => true } }],
    ['planner.reasks', { model, reasks: -1 }],
    ['planner.retries', { model, retries: 0.5 }],
    ['planner.stallMs', { model, stallMs: 0 }],
    ['planner.fallback', { model, fallback: { next: (): undefined => undefined } }],
    ['planner.compaction', { model, compaction: 100 }],
    ['planner.compaction.budgetTokens', { model, compaction: {} }],
    ['planner.compaction.budgetTokens', { model, compaction: { budgetTokens: 0 } }],
    ['planner.maxOutputTokens', { model, maxOutputTokens: '100' }],
    ['planner.temperature', { model, temperature: Number.NaN }],
    ['planner.providerOptions', { model, providerOptions: [] }],
    ['planner.reason', { driver: 'finish', reason: 'bored' }],
    ['planner.payload', { driver: 'finish', payload: () => 1 }],
    ['planner.metadata', { driver: 'finish', metadata: 'none' }],
    ['planner.fallback', { driver: 'pipeline', model, fallback: { next: (): undefined => undefined } }],
    ['planner.outlineModel', { driver: 'pipeline', model, outlineModel: 'small' }],
    ['planner.verifier.model', { driver: 'pipeline', model, candidates: 2, verifier: { model: 'small' } }],
    ['planner.verifier', { driver: 'pipeline', model, candidates: 2, verifier: 'best' }],
    ['planner', { driver: 'pipeline', model, candidates: 2 }],
    ['planner.candidates', { driver: 'pipeline', model, candidates: 0 }],
    ['planner.redact', { driver: 'pipeline', model, redact: 'keys' }],
    ['planner.maxPlanSteps', { driver: 'pipeline', model, maxPlanSteps: -1 }],
    ['planner.prompts', { driver: 'pipeline', model, prompts: 'plan' }],
    // There is one policy, beside the planner.
    ['planner.policy', { driver: 'graph', plan, policy: () => true }],
    ['planner.concurrency', { driver: 'graph', plan, concurrency: 0 }],
    ['planner', { driver: 'graph', plan, concurrency: 51 }],
    ['planner', { driver: 'graph', plan: 5 }],
    ['planner', { driver: 'deterministic' }],
    ['planner', { driver: 'deterministic', steps: [] }],
    ['planner.name', { driver: 'deterministic', name: '', steps: [{ do: 'finish', reason: 'goal' }] }],
    ['planner', { name: '', next: (): undefined => undefined }],
    ['planner', { name: 'mine', wakeMode: 'shove', next: (): undefined => undefined }],
  ])('RG-17 refuses at construction, naming %s', async (path, planner) => {
    const error = await refusalOf({ planner });
    expect(error).toMatchObject({ code: 'invalid_config', data: { path } });
    expect(error.message.startsWith(path)).toBe(true);
  });

  it.each([
    ['planner.modle', { modle: model }, 'model'],
    ['planner.max_steps', { model, max_steps: 3 }, 'maxSteps'],
    ['planner.reasoning_replay', { model, reasoning_replay: 'never' }, 'reasoningReplay'],
    ['planner.model.baseURL', { model: { baseURL: 'http://127.0.0.1:1/v1', model: 'm' } }, 'baseUrl'],
    ['planner.model.apiKey', { model: { baseUrl: 'http://127.0.0.1:1/v1', model: 'm', apiKey: 'sk-1' } }, 'apiKeyEnv'],
    ['planner.compaction.budget', { model, compaction: { budget: 3 } }, 'budgetTokens'],
    ['planner.step', { driver: 'deterministic', step: [] }, 'steps'],
    ['planner.plans', { driver: 'graph', plans: [] }, 'plan'],
    ['planner.maxPlanStep', { driver: 'pipeline', model, maxPlanStep: 3 }, 'maxPlanSteps'],
    ['planner.verifier.modle', { driver: 'pipeline', model, verifier: { modle: model } }, 'model'],
    ['planner.paylod', { driver: 'finish', paylod: 1 }, 'payload'],
  ])('RG-18 refuses the unknown key %s, and names the one that may be meant', async (path, planner, meant) => {
    const { code, message, data } = await refusalOf({ planner });
    expect({ code, data }).toEqual({ code: 'invalid_config', data: { path } });
    expect(message).toMatch(new RegExp(`^${path} is not a key .*\\b${meant}\\b`));
    expect(message).not.toContain('sk-1');
  });

  it('RG-18 names all keys when none is near', async () => {
    const { message } = await refusalOf({ planner: { driver: 'finish', extra: { fast: true } } });
    expect(message).toBe(
      'planner.extra is not a key of the configuration. The keys here are driver, maxSteps, payload, metadata, reason.',
    );
  });
});

describe('the models of a configuration', () => {
  const server = { baseUrl: 'http://127.0.0.1:1/v1', model: 'm' };
  const withEnv = (env: Readonly<Record<string, string>>) => ({ planners: shippedPlanners({ env }) });

  it('may be a server: its key comes from the environment variable that is named', async () => {
    const endpoint = await openaiServer([{ text: 'Good day.' }]);
    try {
      const part = { baseUrl: endpoint.url, model: 'small', apiKeyEnv: 'HOUSE_KEY' };
      const { runtime } = await ready({ planner: { model: part } }, withEnv({ HOUSE_KEY: 'secret-1' }));
      const { decision } = await ask(runtime.planner as Planner, runView());
      expect(decision).toMatchObject({ kind: 'finish', payload: 'Good day.' });
      expect(endpoint.requests[0]?.headers.authorization).toBe('Bearer secret-1');
      expect(endpoint.requests[0]?.body.model).toBe('small');
    } finally {
      await endpoint.close();
    }
  });

  it.each([{}, { HOUSE_KEY: ' ' }])('RG-17 a key that is not set is refused: %j', async (env) => {
    const config = { planner: { model: [model, { model: { ...server, apiKeyEnv: 'HOUSE_KEY' }, name: 'two' }] } };
    const { code, message, data } = await refusalOf(config, withEnv(env));
    expect({ code, data }).toEqual({ code: 'invalid_config', data: { path: 'planner.model[1].model.apiKeyEnv' } });
    // Somebody may have written the key itself there.
    expect(message).not.toContain('HOUSE_KEY');
  });

  it('may be a list that is tried in order, entries, and a registry', async () => {
    const silent = scriptedModel(
      [{ error: Object.assign(new Error('busy'), { statusCode: 503, isRetryable: true }) }],
      {
        modelId: 'first',
      },
    );
    const second = scriptedModel([{ text: 'two' }, { text: 'three' }], { modelId: 'second' });
    const pool = { model: [silent, { model: second, toolCalls: 'text' }], retries: 0 };
    expect(await ask(await reactWith(pool), runView())).toMatchObject({ decision: { payload: 'two' } });
    const registry = createModelRegistry([second]);
    expect(await ask(await reactWith({ model: registry }), runView())).toMatchObject({
      decision: { payload: 'three' },
    });
    expect(registry.measures('second').calls).toBe(1);
  });

  it('may be a server for summaries', async () => {
    const compaction = { budgetTokens: 100, summariser: server };
    expect(await reactWith({ compaction })).toHaveProperty('compact');
  });
});
