import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createModelRegistry, type MeasuresData } from '#model';
import { type MeasuresStore, planMetrics, promptStore } from '#planners/pipeline';
import { type ReplyFunction, scriptedModel } from '#testing';
import { collect } from '../kit/events.ts';
import { start } from '../kit/world.ts';
import { call, end, lines, movesOf, pipelineWorld, plan, play, search, words } from './pipeline-play.ts';

const GOOD = plan(search('a'), end());
const BAD = plan(call('teleport', 'x'));
const SECRET = 'sk-proj-abcdefghijklmnop1234';

describe('AG-29 the record of a plan', () => {
  it('has template, prompt, reply, model, temperature, seed, what came of it and what it used, in the entry of the plan itself', async () => {
    const prompts = promptStore();
    prompts.put({ id: 'plan', text: 'Plan {{goal}} with {{toolList}} by {{schema}}.' });
    const model = scriptedModel([words('Hm.'), GOOD], { modelId: 'm' });
    const played = await play({ pipeline: { model, prompts, temperature: 0.2, seed: 7 } });
    const [moved] = await movesOf(played.run, played);
    expect(moved?.decision).toMatchObject({ kind: 'call_parallel', plan: 'p' });
    expect(moved?.remarks).toMatchObject([
      {
        type: 'plan.try',
        try: 1,
        purpose: 'plan',
        model: 'm',
        template: { id: 'plan', version: 2 },
        temperature: 0.2,
        seed: 7,
        output: 'Hm.',
        usage: { inputTokens: 100, outputTokens: 10 },
        result: 'unreadable',
        faults: [{ code: 'plan_unreadable' }],
      },
      { type: 'plan.try', try: 2, previous: 1, purpose: 'repair', result: 'valid', faults: [] },
    ]);
    expect(moved).toMatchObject({ provenance: { model: 'm', template: 'plan', templateVersion: 2, tries: 2 } });
    const [first, second] = played.tries;
    expect(JSON.parse(first?.prompt ?? '')).toEqual([
      {
        role: 'user',
        content: [
          {
            type: 'text',
            text: expect.stringMatching(/^Plan <goal>\nFind it\n<\/goal> with <available_tools>\n- broken/),
          },
        ],
      },
    ]);
    expect(JSON.parse(second?.prompt ?? '')).toHaveLength(2);
    expect(second?.output).toContain('submit_plan({"planId":"p"');
  });

  it('a certain version of a template is used when it is asked for', async () => {
    const prompts = promptStore();
    prompts.put({ id: 'mine', text: 'One {{goal}}' });
    prompts.put({ id: 'mine', text: 'Two {{goal}}' });
    const options = { prompts, template: { id: 'mine', version: 1 } };
    const { tries } = await play({ pipeline: { model: scriptedModel([GOOD]), ...options } });
    expect(tries[0]).toMatchObject({ template: { id: 'mine', version: 1 } });
    expect(tries[0]?.prompt).toContain('One <goal>\\nFind it\\n</goal>');
    const missing = await play({ pipeline: { model: scriptedModel([]), prompts, template: 'nowhere' } });
    expect(missing.result).toMatchObject({ status: 'failed' });
    expect(JSON.stringify(missing.result)).toContain('nowhere');
  });

  it.each([
    { stream: false },
    { stream: true },
  ])('AG-29 W102 secrets are kept out of prompts and replies: $stream', async ({ stream }) => {
    const reply = stream ? lines : plan;
    const model = scriptedModel([words(`I use ${SECRET} and code-4711`), reply(search('a', SECRET), end('code-4711'))]);
    const played = await play({
      pipeline: { model, stream, redact: [{ name: 'code', pattern: /code-\d+/ }] },
      start: { query: `Log in with the password: hunter2hunter2 and ${SECRET}, then find code-4712` },
    });
    expect(played.ran).toEqual([`search ${SECRET}`]);
    expect(played.tries).toHaveLength(2);
    const told = JSON.stringify(played.tries);
    for (const secret of [SECRET, 'hunter2hunter2', 'code-4711', 'code-4712']) expect(told).not.toContain(secret);
    expect(told).toContain('[redacted:code]');
    for (const { prompt } of played.tries) expect(() => JSON.parse(prompt)).not.toThrow();
  });

  it('AG-29 faults that name a secret do so without it, in the record and at the end of the run', async () => {
    const model = scriptedModel(() => plan(call(SECRET, 'x')));
    const { result, tries } = await play({ pipeline: { model } });
    expect(result).toMatchObject({ reason: 'no_path' });
    expect(JSON.stringify([result, tries])).not.toContain(SECRET);
  });
});

describe('AG-30 failed tries', () => {
  it('are stored, each linked to the one before, also when no plan came of them', async () => {
    const pool = ['a', 'b'].map((modelId) => scriptedModel(() => BAD, { modelId }));
    const played = await play({ pipeline: { model: pool } });
    expect(played.result).toMatchObject({ reason: 'no_path' });
    expect(played.tries.map(({ try: number, previous, model, result }) => [number, previous, model, result])).toEqual([
      [1, undefined, 'a', 'invalid'],
      [2, 1, 'a', 'invalid'],
      [3, 2, 'b', 'invalid'],
      [4, 3, 'b', 'invalid'],
    ]);
    const events = await collect(played.run);
    expect(events.filter(({ type }) => type === 'plan.try')).toHaveLength(4);
    expect(planMetrics(events).rows).toMatchObject([
      { model: 'a', tries: 2, invalid: 2, repairs: 1, inputTokens: 200 },
      { model: 'b', tries: 2, invalid: 2, repairs: 1, inputTokens: 200 },
    ]);
  });

  it('AG-30 AG-07 a stored plan, with its seed and a model that goes by it, comes again', async () => {
    const bySeed: ReplyFunction = ({ seed = 0 }) => plan(search(`s${seed % 3}`), end({ seed }));
    const first = await play({ pipeline: { model: scriptedModel(bySeed), seed: 11 } });
    const seed = first.tries[0]?.seed;
    expect(seed).toBe(11);
    const again = await play({ pipeline: { model: scriptedModel(bySeed), seed: seed as number } });
    expect(again.steps[0]?.decision).toEqual(first.steps[0]?.decision);
    const other = await play({ pipeline: { model: scriptedModel(bySeed), seed: 12 } });
    expect(other.steps[0]?.decision).not.toEqual(first.steps[0]?.decision);
  });

  it('AG-07 the planner keeps nothing: asked again about the same run it makes the same plan', async () => {
    const model = scriptedModel(({ seed }) => plan(search('a'), end({ seed: seed ?? null })));
    const made = pipelineWorld({ pipeline: { model, seed: 3 } });
    const run = await start(made, { query: 'Find it' });
    await run.result();
    const report = await run.replay();
    expect(report).toMatchObject({ compared: 2 });
    expect(report).not.toHaveProperty('divergence');
    expect(model.calls).toHaveLength(2);
  });
});

describe('AG-31 a plan that cannot be stored', () => {
  it.each([{ stream: false }, { stream: true }])('does not run: streamed $stream', async ({ stream }) => {
    const inner = memoryJournal();
    const refuse = (): never => {
      throw new PilotageError('journal_read_only', 'The disk is read-only.');
    };
    const journal = new Proxy<Journal>(inner, {
      get(target, name: keyof Journal) {
        if (name !== 'append') return typeof target[name] === 'function' ? target[name].bind(target) : target[name];
        return async (append: Parameters<Journal['append']>[0]) =>
          append.entries.some(({ kind }) => kind === 'moved') ? refuse() : target.append(append);
      },
    });
    const model = scriptedModel([(stream ? lines : plan)(search('a'), end())]);
    const made = pipelineWorld({ pipeline: { model, stream }, journal });
    const run = await start(made, { query: 'Find it' });
    await expect(run.result()).rejects.toMatchObject({ code: 'journal_read_only' });
    expect(made.ran).toEqual([]);
    expect((await inner.read(run.id)).map(({ kind }) => kind)).toEqual(['started']);
  });
});

describe('AG-15 measures that outlive the process', () => {
  const memory = (data?: MeasuresData): MeasuresStore & { data: MeasuresData | undefined } => ({
    data,
    load() {
      return Promise.resolve(this.data);
    },
    save(next) {
      this.data = next;
      return Promise.resolve();
    },
  });

  it('are taken in before the first call, rank a list, and are stored after each', async () => {
    const at = Date.now();
    const failures = Array.from({ length: 10 }, () => ({ parsed: false, succeeded: false, at }));
    const measures = memory({ a: failures });
    const a = scriptedModel(() => GOOD, { modelId: 'a' });
    const b = scriptedModel(() => GOOD, { modelId: 'b' });
    await play({ pipeline: { model: [a, b], measures, clock: { now: () => at, after: () => () => {} } } });
    expect([a.calls.length, b.calls.length]).toEqual([0, 1]);
    expect(measures.data?.['b']).toMatchObject([{ parsed: true, valid: true, succeeded: true }]);
    expect(measures.data?.['a']).toHaveLength(10);
  });

  it('a store that fails is told of, and the plan is made', async () => {
    const faults: unknown[] = [];
    const gone = new Error('gone');
    const measures = { load: () => Promise.reject(gone), save: () => Promise.reject(gone) };
    const registry = createModelRegistry([scriptedModel(() => GOOD)]);
    const { ran } = await play({
      pipeline: { model: registry, measures, onFault: (error) => faults.push(error) },
    });
    expect(ran).toEqual(['search a']);
    expect(faults).toEqual([gone, gone]);
  });
});
