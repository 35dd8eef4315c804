/** Calls that wait, are tried again or are undone: what is in which span, and for how long. */
import { context, createContextKey } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { expect, it } from 'vitest';
import type { Planner } from '#core';
import { memoryJournal } from '#journal';
import { agent, agentTool, createRuntime, ToolFailure } from '#pilotage';
import { VirtualClock } from '#testing';
import { call, finish, script } from '../kit/decisions.ts';
import { traced, withContexts } from '../kit/spans.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';

const HOUR = 3_600_000;
/** Seconds since the epoch. */
const at = ([seconds]: ReadableSpan['startTime']): number => seconds;

it('an attempt that failed, and the one that another process makes later, are two spans without the time between them', async () => {
  const clock = new VirtualClock();
  const { telemetry, spans } = traced();
  const journal = memoryJournal({ clock });
  let tried = 0;
  const flaky = make(
    'flaky',
    () => {
      tried += 1;
      if (tried === 1) throw new ToolFailure('Not now.', { retryAfterMs: HOUR });
      return tried;
    },
    { effect: 'read', retries: 1 },
  );
  const program = () =>
    createRuntime({ planner: script(call('flaky'), finish('ok')), tools: [flaky], journal, clock, telemetry });
  const calls = () => spans().filter(({ name }) => name === 'execute_tool flaky');
  const first = program();
  const run = await first.start('go');
  await until(() => calls().length === 1);
  await first.close();
  clock.advance(5 * HOUR);
  const second = program();
  const since = clock.now() / 1_000;
  second.work();
  await advanceUntil(clock, async () => (await second.run(run.id).record())?.status === 'finished');
  await second.close();
  const [failed, made] = calls();
  expect(failed?.attributes['error.type']).toBe('tool_failed');
  expect(made?.attributes['error.type']).toBeUndefined();
  expect(at(made?.startTime ?? [0, 0])).toBeGreaterThanOrEqual(Math.floor(since));
  for (const each of calls()) expect(at(each.duration)).toBeLessThan(HOUR / 10_000);
});

it('a call that has asked somebody has no span for the time until the answer', async () => {
  const clock = new VirtualClock();
  const { telemetry, spans } = traced();
  const asks = make('asks', async (_, { ask }) => ask({ question: 'Sure?' }), { effect: 'read' });
  const runtime = createRuntime({
    planner: script(call('asks'), finish('ok')),
    tools: [asks],
    journal: memoryJournal({ clock }),
    clock,
    telemetry,
  });
  const run = await runtime.start('go');
  await until(async () => (await run.record())?.status === 'paused');
  clock.advance(5 * HOUR);
  const [question] = (await run.state())?.pauses ?? [];
  await run.answer(question?.token ?? '', { kind: 'answer', value: 'Yes.' });
  await run.result();
  await runtime.close();
  const calls = spans().filter(({ name }) => name === 'execute_tool asks');
  expect(calls.length).toBeGreaterThan(0);
  expect(calls.at(-1)?.attributes['pilotage.outcome']).toBe('value');
  for (const { duration } of calls) expect(at(duration)).toBeLessThan(HOUR / 10_000);
});

it('a task that a call starts once more is below that call', async () => {
  const { telemetry, tree } = traced();
  let asked = 0;
  const planner: Planner = {
    name: 'c',
    next: () => {
      asked += 1;
      return asked === 1 ? { kind: 'finish', reason: 'no_path' } : finish('ok');
    },
  };
  const plan = {
    kind: 'call_parallel',
    plan: 'p',
    branches: [{ id: 'a', tool: 'child', args: { input: 'go' } }],
  } as const;
  const runtime = createRuntime({
    planner: ({ trajectory }) => {
      if (trajectory.count === 0) return plan;
      if (asked === 1) throw new Error('The plan has failed.');
      return finish('ok');
    },
    tools: [agentTool(agent({ name: 'child', planner }), { description: 'A child.' })],
    journal: memoryJournal(),
    telemetry,
  });
  const run = await runtime.start('go');
  await run.result();
  await run.retry();
  expect(await run.result()).toMatchObject({ status: 'finished' });
  await runtime.close();
  expect(tree().filter((line) => line.startsWith('invoke_agent child < execute_tool child'))).toHaveLength(2);
});

it('a call that undoes another one is in a span, and nobody has planned it; what was never made is not counted', async () => {
  const { telemetry, tree, metrics } = traced();
  const undo = () => ({ tool: 'cancel', args: {} });
  const runtime = createRuntime({
    planner: script(call('book'), call('made_up'), { kind: 'finish', reason: 'no_path' }),
    tools: [make('book', () => 1, { effect: 'keyed', undo }), make('cancel', () => 1, { effect: 'keyed' })],
    journal: memoryJournal(),
    onFail: 'undo',
    telemetry,
  });
  await (await runtime.start('go')).result();
  await runtime.close();
  expect(tree().filter((line) => line.startsWith('plan '))).toHaveLength(3);
  expect(tree()).toContain('execute_tool cancel < invoke_agent function');
  const counted = (await metrics())['gen_ai.execute_tool.duration']?.map(({ attributes }) => attributes);
  expect(counted).toEqual([{ 'gen_ai.tool.name': 'book' }, { 'gen_ai.tool.name': 'cancel' }]);
});

it('what the program has in its context where a run is started is not in the context of its tools', () =>
  withContexts(async () => {
    const key = createContextKey('baggage of a request');
    const seen: unknown[] = [];
    const looks = make('looks', () => void seen.push(context.active().getValue(key)));
    const { telemetry } = traced();
    const planner = script(call('looks'), finish('ok'));
    const runtime = createRuntime({ planner, tools: [looks], journal: memoryJournal(), telemetry });
    await context.with(context.active().setValue(key, 'of ann'), async () => (await runtime.start('go')).result());
    await runtime.close();
    expect(seen).toEqual([undefined]);
  }));
