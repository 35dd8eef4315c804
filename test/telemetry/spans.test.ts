/** Runs as traces of OpenTelemetry: with its own SDK, as users have it. */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import { local, type Telemetry } from '#core';
import { memoryJournal } from '#journal';
import { agent, agentTool, createRuntime, react } from '#pilotage';
import { api, createHandler } from '#server';
import { withTraceparent } from '#telemetry';
import { scriptedModel, VirtualClock } from '#testing';
import { call, finish, script } from '../kit/decisions.ts';
import { activeSpan, traced, withContexts } from '../kit/spans.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';

const weather = make('weather', ({ city }) => `sunny in ${city}`);

describe('a run is a trace', () => {
  it('with a span for the run, each reply of the model and each call, by the conventions for generative AI', async () => {
    const { telemetry, span, tree, spans } = traced();
    const model = scriptedModel([
      { calls: [{ tool: 'weather', args: { city: 'Oslo' } }], usage: { inputTokens: 10, outputTokens: 5 } },
      { text: 'It is sunny.', usage: { inputTokens: 20, outputTokens: 4 } },
    ]);
    const trip = agent({ name: 'trip', planner: react({ model }), tools: [weather] });
    const runtime = createRuntime({ agents: [trip], journal: memoryJournal(), telemetry });
    const identity = { ...local('ann'), tenant: 'acme', session: 'chat-1' };
    const run = await runtime.start('Is it sunny in Oslo?', { identity });
    await run.result();
    await runtime.close();
    const name = model.modelId;
    expect(tree()).toEqual([
      `chat ${name} < invoke_agent trip`,
      'execute_tool weather < invoke_agent trip',
      `chat ${name} < invoke_agent trip`,
      'invoke_agent trip',
    ]);
    expect(new Set(spans().map((each) => each.spanContext().traceId)).size).toBe(1);
    const whole = span('invoke_agent trip');
    expect(whole.kind).toBe(SpanKind.INTERNAL);
    expect(whole.attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'trip',
      'gen_ai.conversation.id': 'chat-1',
      'pilotage.run.id': run.id,
      'pilotage.tenant.id': 'acme',
      'pilotage.finish_reason': 'goal',
    });
    const [chat] = spans();
    expect(chat?.kind).toBe(SpanKind.CLIENT);
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': name,
      'gen_ai.response.model': name,
      'gen_ai.provider.name': expect.any(String),
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
      'pilotage.step': 0,
    });
    expect(span('execute_tool weather').attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'weather',
      'gen_ai.tool.type': 'function',
      'pilotage.outcome': 'value',
    });
    // Nobody has asked for what was said.
    const said = JSON.stringify(spans().map(({ attributes }) => attributes));
    expect(said).not.toContain('Oslo');
    expect(said).not.toContain('sunny');
  });

  it('says what was asked and answered when it is told to, without secrets', async () => {
    const { telemetry, span, spans } = traced({ content: true });
    const model = scriptedModel([{ calls: [{ tool: 'weather', args: { city: 'hunter-2' } }] }, { text: 'Sunny.' }]);
    const runtime = createRuntime({
      planner: react({ model }),
      tools: [weather],
      journal: memoryJournal(),
      redact: { rules: ['hunter-2'], also: ['goals', 'results', 'texts'] },
      telemetry,
    });
    await (await runtime.start('Where is hunter-2?')).result();
    await runtime.close();
    const { attributes } = span('invoke_agent react');
    expect(JSON.parse(String(attributes['gen_ai.output.messages']))).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'Sunny.' }] },
    ]);
    expect(String(attributes['gen_ai.input.messages'])).toContain('Where is ');
    expect(span('execute_tool weather').attributes['gen_ai.tool.call.result']).toContain('sunny in');
    expect(spans()[0]?.attributes['gen_ai.output.messages']).toContain('"tool_call"');
    expect(JSON.stringify(spans().map((each) => each.attributes))).not.toContain('hunter-2');
  });

  it('has the tasks of a run below the calls that started them, and tasks of tasks below theirs', async () => {
    const { telemetry, tree, spans } = traced();
    const leaf = agent({
      name: 'leaf',
      planner: { name: 'l', next: script(call('weather'), finish('leaf')) },
      tools: [weather],
    });
    const middle = agent({
      name: 'middle',
      planner: { name: 'm', next: script(call('leaf', { input: 'go' }), finish('middle')) },
      tools: [agentTool(leaf, { description: 'A leaf.' })],
    });
    const runtime = createRuntime({
      planner: script(call('middle', { input: 'go' }), finish('root')),
      tools: [agentTool(middle, { description: 'A middle.' })],
      journal: memoryJournal(),
      telemetry,
    });
    await (await runtime.start('go')).result();
    await runtime.close();
    const lines = tree().filter((line) => !line.startsWith('plan '));
    expect(lines).toContain('execute_tool weather < invoke_agent leaf');
    expect(lines).toContain('invoke_agent leaf < execute_tool leaf');
    expect(lines).toContain('execute_tool leaf < invoke_agent middle');
    expect(lines).toContain('invoke_agent middle < execute_tool middle');
    expect(lines.some((line) => line.includes('unknown'))).toBe(false);
    expect(new Set(spans().map((each) => each.spanContext().traceId)).size).toBe(1);
  });

  it('says why a call, a move and a run failed, by stable codes, and gives no span the name of a tool that was made up', async () => {
    const { telemetry, span, spans } = traced();
    const broken = make('broken', () => {
      throw new Error('no');
    });
    const runtime = createRuntime({
      planner: script(call('broken'), call('made up 7'), { kind: 'finish', reason: 'no_path' }),
      tools: [broken],
      journal: memoryJournal(),
      telemetry,
    });
    await (await runtime.start('go')).result();
    await runtime.close();
    expect(span('execute_tool broken').attributes['error.type']).toBe('tool_failed');
    expect(span('execute_tool broken').status.code).toBe(SpanStatusCode.ERROR);
    expect(spans().some(({ name }) => name.includes('made up'))).toBe(false);
    const whole = spans().find(({ name }) => name.startsWith('invoke_agent'));
    expect(whole?.attributes['error.type']).toBe('no_path');
  });

  it('has no span for the time in which a call waits', async () => {
    const clock = new VirtualClock();
    const { telemetry, spans } = traced();
    const DAY = 86_400_000;
    const patient = make(
      'patient',
      async (_, { sleep }) => {
        await sleep({ forMs: 3 * DAY });
        return 'done';
      },
      { effect: 'read' },
    );
    const runtime = createRuntime({
      planner: script(call('patient'), finish('ok')),
      tools: [patient],
      journal: memoryJournal({ clock }),
      clock,
      telemetry,
    });
    const run = await runtime.start('go');
    await until(async () => (await run.record())?.status === 'waiting');
    clock.advance(3 * DAY + 1);
    await advanceUntil(clock, async () => (await run.record())?.status === 'finished');
    await runtime.close();
    const calls = spans().filter(({ name }) => name === 'execute_tool patient');
    expect(calls).toHaveLength(2);
    for (const { duration } of calls) expect(duration[0]).toBeLessThan(60);
    expect(calls[0]?.attributes['pilotage.waits_for']).toEqual(['time']);
    expect(new Set(calls.map((each) => each.spanContext().spanId)).size).toBe(2);
  });
});

describe('a trace reaches beyond the run', () => {
  it('into what tools and planners do, and what they ask of others', () =>
    withContexts(async () => {
      const { telemetry, provider, tree, spans, span } = traced();
      const seen: Record<string, string | undefined> = {};
      const looks = make('looks', async (_, context) => {
        await Promise.resolve();
        seen['tool'] = activeSpan();
        seen['told'] = context.traceparent;
        provider.getTracer('own').startSpan('query').end();
      });
      const runtime = createRuntime({
        planner: {
          name: 'p',
          next: async ({ trajectory: { count } }) => {
            await Promise.resolve();
            if (count === 0) seen['planner'] = activeSpan();
            return count === 0 ? call('looks') : finish('ok');
          },
        },
        tools: [looks],
        journal: memoryJournal(),
        telemetry,
      });
      await (await runtime.start('go')).result();
      await runtime.close();
      const { spanId, traceId } = span('execute_tool looks').spanContext();
      expect(seen['tool']).toBe(spanId);
      expect(seen['told']).toBe(`00-${traceId}-${spanId}-01`);
      expect(spans().map((each) => each.spanContext().spanId)).toContain(seen['planner']);
      expect(tree()).toContain('query < execute_tool looks');
      expect(activeSpan()).toBeUndefined();
    }));

  it('from what starts the run: the span that is active in the program, or else the header of the request', () =>
    withContexts(async () => {
      const { telemetry, provider, spans } = traced();
      const runtime = createRuntime({ planner: script(finish('ok')), journal: memoryJournal(), telemetry });
      const started = await provider.getTracer('own').startActiveSpan('request', async (request) => {
        const run = await runtime.start('go');
        request.end();
        return { run, request: request.spanContext() };
      });
      await started.run.result();
      const handler = createHandler({ runtime, parts: [api()] });
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const answer = await handler(
        new Request('http://localhost/runs', {
          method: 'POST',
          headers: { 'content-type': 'application/json', host: 'localhost', traceparent },
          body: JSON.stringify({ query: 'go' }),
        }),
      );
      expect(answer.status).toBe(201);
      const { run: id } = (await answer.json()) as { run: string };
      await runtime.run(id).result();
      await runtime.close();
      const runs = spans().filter(({ name }) => name.startsWith('invoke_agent'));
      expect(
        runs.map(({ parentSpanContext, attributes }) => [attributes['pilotage.run.id'], parentSpanContext?.spanId]),
      ).toEqual([
        [started.run.id, started.request.spanId],
        [id, 'b7ad6b7169203331'],
      ]);
      expect(runs.map((each) => each.spanContext().traceId)).toEqual([
        started.request.traceId,
        '0af7651916cd43dd8448eb211c80319c',
      ]);
    }));

  it('but not into a fork of the run, nor does a replay or a reader make spans', async () => {
    const { telemetry, spans } = traced();
    const runtime = createRuntime({
      planner: script(call('weather'), finish('ok')),
      tools: [weather],
      journal: memoryJournal(),
      telemetry,
    });
    const run = await withTraceparent('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', () =>
      runtime.start('go'),
    );
    await run.result();
    const made = spans().length;
    await run.replay();
    await run.state();
    for await (const event of run.events()) void event;
    expect(spans()).toHaveLength(made);
    const fork = await run.fork({ step: 1 });
    await fork.result();
    await runtime.close();
    const [whole, forked] = spans().filter(({ name }) => name.startsWith('invoke_agent'));
    expect(whole?.spanContext().traceId).toBe('0af7651916cd43dd8448eb211c80319c');
    expect(forked?.spanContext().traceId).not.toBe(whole?.spanContext().traceId);
    expect(spans().filter(({ name }) => name === 'execute_tool weather')).toHaveLength(1);
  });
});

describe('the sampler decides once for the whole run', () => {
  const family = (telemetry: Telemetry): ReturnType<typeof createRuntime> => {
    const child = agent({
      name: 'child',
      planner: { name: 'c', next: script(call('weather'), finish('ok')) },
      tools: [weather],
    });
    return createRuntime({
      planner: script(call('child', { input: 'go' }), finish('ok')),
      tools: [agentTool(child, { description: 'A child.' })],
      journal: memoryJournal(),
      telemetry,
    });
  };

  it.each([0.5, 0.1])('and for all of its tasks (%d)', async (ratio) => {
    const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
    const { telemetry, spans, tree } = traced({ sampler });
    const runtime = family(telemetry);
    await Promise.all(Array.from({ length: 40 }, async () => (await runtime.start('go')).result()));
    await runtime.close();
    const traces = new Set(spans().map((each) => each.spanContext().traceId));
    expect(traces.size).toBeLessThan(40);
    expect(tree().filter((line) => line === 'invoke_agent child < execute_tool child')).toHaveLength(traces.size);
    expect(tree().some((line) => line.includes('unknown'))).toBe(false);
  });

  it('and a request that is not sampled has runs without spans, and tells others so', async () => {
    const { telemetry, spans } = traced();
    const told: (string | undefined)[] = [];
    const looks = make('looks', (_, { traceparent }) => told.push(traceparent));
    const runtime = createRuntime({
      planner: script(call('looks'), finish('ok')),
      tools: [looks],
      journal: memoryJournal(),
      telemetry,
    });
    const run = await withTraceparent('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00', () =>
      runtime.start('go'),
    );
    await run.result();
    await runtime.close();
    expect(spans()).toEqual([]);
    expect(told).toEqual([expect.stringMatching(/^00-0af7651916cd43dd8448eb211c80319c-[\da-f]{16}-00$/)]);
  });
});

describe('RL-30 telemetry hinders no run', () => {
  it('when the provider of the program has ids of its own, which the fault explains', async () => {
    const { telemetry, spans } = traced({ ids: null });
    const faults: unknown[] = [];
    const runtime = createRuntime({
      planner: script(call('weather'), finish('ok')),
      tools: [weather],
      journal: memoryJournal(),
      telemetry,
      onFault: (error) => faults.push(error),
    });
    expect(await (await runtime.start('go')).result()).toMatchObject({ status: 'finished', answer: 'ok' });
    await runtime.close();
    expect(spans()).toEqual([]);
    expect(String(faults[0])).toContain('idGenerator: runIds');
    // Once, not for every entry.
    expect(faults).toHaveLength(1);
  });

  it.each(['parent', 'of', 'within', 'traceparent', 'recorded'])('when %s throws', async (broken) => {
    const faults: unknown[] = [];
    const boom = (): never => {
      throw new Error('boom');
    };
    const whole: Telemetry = {
      parent: () => undefined,
      of: () => ({
        within: (_, work) => work(),
        traceparent: () => '',
        recorded: () => undefined,
        ...{ [broken]: boom },
      }),
      ...{ [broken]: boom },
    };
    let made = 0;
    const counts = make('counts', (_, { traceparent }) => {
      made += 1;
      return traceparent ?? 'none';
    });
    const telemetry = broken === 'parent' || broken === 'of' ? whole : { ...whole, parent: () => undefined };
    const runtime = createRuntime({
      planner: script(call('counts'), finish('ok')),
      tools: [counts],
      journal: memoryJournal(),
      telemetry,
      onFault: (error) => faults.push(error),
    });
    expect(await (await runtime.start('go')).result()).toMatchObject({ status: 'finished', answer: 'ok' });
    await runtime.close();
    expect(made).toBe(1);
    expect(faults.length).toBeGreaterThan(0);
  });

  it('and is called for nothing that was not written, nor twice for what was', async () => {
    const written: string[] = [];
    const telemetry: Telemetry = {
      parent: () => undefined,
      of: ({ identity }) => ({
        within: (_, work) => work(),
        traceparent: () => '',
        recorded: ({ seq, kind }) => written.push(`${identity.run} ${seq} ${kind}`),
      }),
    };
    const journal = memoryJournal();
    const runtime = createRuntime({
      planner: script(call('weather'), finish('ok')),
      tools: [weather],
      journal,
      telemetry,
    });
    const run = await runtime.start('go');
    await run.result();
    await runtime.close();
    const entries = await journal.read(run.id, 2);
    expect(written).toEqual(entries.map(({ seq, kind }) => `${run.id} ${seq} ${kind}`));
  });
});

describe('what is counted', () => {
  it('is named by the conventions, and has no ids of runs', async () => {
    const { telemetry, metrics } = traced();
    const model = scriptedModel([
      { calls: [{ tool: 'weather', args: { city: 'Oslo' } }], usage: { inputTokens: 10, outputTokens: 5 } },
      { text: 'It is sunny.', usage: { inputTokens: 20, outputTokens: 4 } },
    ]);
    const runtime = createRuntime({ planner: react({ model }), tools: [weather], journal: memoryJournal(), telemetry });
    const run = await runtime.start('go');
    await run.result();
    await runtime.close();
    const counted = await metrics();
    const values = Object.fromEntries(
      Object.entries(counted).map(([name, points]) => [name, points.map(({ value }) => value)]),
    );
    expect(values).toEqual({
      'gen_ai.client.inference.duration': [2],
      'gen_ai.client.inference.usage.input_tokens': [30],
      'gen_ai.client.inference.usage.output_tokens': [9],
      'gen_ai.execute_tool.duration': [1],
      'gen_ai.invoke_agent.duration': [1],
    });
    expect(JSON.stringify(counted)).not.toContain(run.id);
  });
});
