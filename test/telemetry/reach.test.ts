/** Which work is below which span, and which run belongs to which trace, where the code that is asked is not simply a function that answers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Planner } from '#core';
import { memoryJournal } from '#journal';
import { agent, createRuntime, handoff } from '#pilotage';
import { a2aTool } from '#server/a2a';
import { withTraceparent } from '#telemetry';
import { call, finish, script } from '../kit/decisions.ts';
import { activeSpan, traced, withContexts } from '../kit/spans.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const journal = memoryJournal;

describe('a span is active', () => {
  it('in a tool that gives its result piece by piece, until its end', () =>
    withContexts(async () => {
      const { telemetry, span } = traced();
      const seen: (string | undefined)[] = [];
      const pieces = make('pieces', async function* () {
        seen.push(activeSpan());
        yield 'a';
        await Promise.resolve();
        seen.push(activeSpan());
      });
      const planner = script(call('pieces'), finish('ok'));
      const runtime = createRuntime({ planner, tools: [pieces], journal: journal(), telemetry });
      await (await runtime.start('go')).result();
      await runtime.close();
      const { spanId } = span('execute_tool pieces').spanContext();
      expect(seen).toEqual([spanId, spanId]);
    }));

  it('in a planner that goes on with its plan while the plan is carried out, and its span has all of the reply', () =>
    withContexts(async () => {
      const { telemetry, span, metrics, tree } = traced();
      const seen: (string | undefined)[] = [];
      const branches = [{ id: 'a', tool: 'one', args: {} }];
      const planner: Planner = {
        name: 'grows',
        async *next({ trajectory }) {
          if (trajectory.count > 0) return finish('ok');
          seen.push(activeSpan());
          yield { type: 'branches', plan: 'p', branches };
          await Promise.resolve();
          seen.push(activeSpan());
          return {
            decision: { kind: 'call_parallel', plan: 'p', branches, onInvalid: 'per_branch' },
            usage: { inputTokens: 10, outputTokens: 3 },
            provenance: { model: 'm' },
          };
        },
      };
      const runtime = createRuntime({ planner, tools: [make('one', () => 1)], journal: journal(), telemetry });
      await (await runtime.start('go')).result();
      await runtime.close();
      const chat = span('chat m');
      expect(seen).toEqual([chat.spanContext().spanId, chat.spanContext().spanId]);
      expect(chat.attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 3 });
      expect((await metrics())['gen_ai.client.inference.usage.input_tokens']).toMatchObject([{ value: 10 }]);
      expect(tree().filter((line) => line.endsWith('< invoke_agent grows'))).toHaveLength(3);
    }));

  it('and is made, in a planner that fails, with why it did', () =>
    withContexts(async () => {
      const { telemetry, provider, tree } = traced();
      const runtime = createRuntime({
        planner: async () => {
          await Promise.resolve();
          provider.getTracer('own').startSpan('request').end();
          throw new Error('no');
        },
        journal: journal(),
        telemetry,
      });
      await (await runtime.start('go')).result();
      await runtime.close();
      expect(tree()).toEqual([
        'request < plan planner',
        'plan planner < invoke_agent planner (planner_failed)',
        'invoke_agent planner (planner_failed)',
      ]);
    }));
});

it('a run that failed and went on has no two spans of one id', async () => {
  const { telemetry, spans } = traced();
  let made = 0;
  const flaky = make('flaky', () => {
    made += 1;
    if (made === 1) throw new Error('no');
    return made;
  });
  const plan = { kind: 'call_parallel', plan: 'p', branches: [{ id: 'a', tool: 'flaky', args: {} }] } as const;
  const runtime = createRuntime({
    planner: ({ trajectory }) => {
      if (trajectory.count === 0) return plan;
      if (made === 1) throw new Error('The plan has failed.');
      return finish('ok');
    },
    tools: [flaky],
    journal: journal(),
    telemetry,
  });
  const run = await runtime.start('go');
  await run.result();
  await run.retry();
  expect(await run.result()).toMatchObject({ status: 'finished' });
  await runtime.close();
  const ids = spans().map((each) => each.spanContext().spanId);
  expect(ids).toHaveLength(7);
  expect(new Set(ids).size).toBe(7);
});

describe('a run belongs to the trace', () => {
  it.each([PARENT, undefined])('of the run that hands over to it, which %s began', async (given) => {
    const { telemetry, spans, span } = traced();
    const billing = agent({ name: 'billing', planner: { name: 'b', next: script(finish('done')) } });
    const over = handoff(billing, { description: 'Takes over.' });
    const triage = agent({ name: 'triage', planner: { name: 't', next: script(call(over.name)) }, tools: [over] });
    const runtime = createRuntime({ agents: [triage, billing], journal: journal(), telemetry });
    const run = await withTraceparent(given, () => runtime.start('go', { agent: 'triage' }));
    expect(await run.result()).toMatchObject({ answer: 'done' });
    await runtime.close();
    expect(new Set(spans().map((each) => each.spanContext().traceId)).size).toBe(1);
    const first = span('invoke_agent triage').spanContext();
    expect(span('invoke_agent triage').attributes['error.type']).toBeUndefined();
    expect(span('invoke_agent billing').parentSpanContext?.spanId).toBe(
      given === undefined ? first.spanId : 'b7ad6b7169203331',
    );
  });

  it('of nobody, when its schedule fires it, whichever request has put the schedule', () =>
    withContexts(async () => {
      const { telemetry, provider, spans } = traced();
      const runtime = createRuntime({ planner: script(finish('ok')), journal: journal(), telemetry });
      await withTraceparent(PARENT, () =>
        provider.getTracer('own').startActiveSpan('request', async (request) => {
          await runtime.schedules.put({ id: 'often', everyMs: 1_000, query: 'go' });
          request.end();
        }),
      );
      const fired = () => spans().filter(({ name }) => name.startsWith('invoke_agent'));
      await until(() => fired().length > 0);
      await runtime.close();
      expect(fired().map(({ parentSpanContext }) => parentSpanContext)).toEqual(fired().map(() => undefined));
    }));

  it('that it was started with, also where there is no telemetry: what it asks is not told of another run’s', async () => {
    const told: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      told.push(request.headers['traceparent'] as string | undefined);
      response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const far = a2aTool({ name: 'far', url });
    const runtime = createRuntime({
      planner: script(call('far', { message: 'go' }), finish('ok')),
      tools: [far],
      journal: journal(),
      maxLiveRuns: 1,
    });
    // One begins when the other ends, in what is left of its request. What comes behind the flags is as long as whoever sends it likes.
    const first = await withTraceparent(`01-${PARENT.slice(3)}-${'more'.repeat(1_000)}\r\nevil: yes`, () =>
      runtime.start('one'),
    );
    const second = await runtime.start('two');
    for (const run of [first, second]) await run.result();
    await runtime.close();
    server.close();
    expect(told.slice(0, 1)).toEqual([PARENT]);
    expect(told.at(-1)).toBeUndefined();
  });
});
