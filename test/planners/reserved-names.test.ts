/** Reserved names are words of plans and decisions: no model is shown them as calls that it could make. */
import { describe, expect, it } from 'vitest';
import type { Decision, Json, PlannerFunction, RunContext } from '#core';
import { pipeline } from '#planners/pipeline';
import { type ReactOptions, react } from '#planners/react';
import { summaryRequest } from '#prompt';
import { runView, type ScriptedReply, scriptedModel } from '#testing';
import { call, finish } from '../kit/decisions.ts';
import { messagesOf, NATIVE, TEXT } from '../kit/messages.ts';
import { failure, stepOf, value } from '../kit/steps.ts';
import { awaits, PARENT, spawns } from '../kit/tasks.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const NAMES = /(?<![a-z])_(?:message|finish|spawn_task|await_task)/;
const search = make('search', () => 'Oslo');
const fail = make('fail', () => {
  throw new Error('out of order');
});

/** A plan that says something and has a result, as graph, htn and pipeline make them. */
const PLAN: Decision = {
  kind: 'call_parallel',
  plan: 'trip',
  branches: [
    { id: 's', tool: 'search', args: {} },
    { id: 'm', tool: '_message', args: { said: { $from: 's' } } },
    { id: 'f', tool: '_finish', args: { city: { $from: 's' } }, after: ['m'] },
  ],
};
const MESSAGE: Decision = { kind: 'call_parallel', plan: 'say', branches: [{ tool: '_message', args: 'Still here.' }] };

/** What a model is asked in a run whose first steps another planner decided. */
async function asked(decisions: readonly Decision[], options: Omit<ReactOptions, 'model'> = {}, context?: RunContext) {
  const results: string[][] = [];
  for (const toolCalls of ['native', 'text'] as const) {
    const scripted = scriptedModel(() => ({ text: 'All done.' }));
    const own = react({ ...options, model: { model: scripted, toolCalls } });
    const planner: PlannerFunction = (run, signal) => {
      if (run.task !== undefined) return finish('done by the task');
      return decisions[run.trajectory.count] ?? own.next({ ...run, streaming: false }, signal);
    };
    const given = context === undefined ? {} : { context };
    const run = await start(world({ planner, tools: [search, fail] }), { identity: PARENT, ...given });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'All done.' });
    results.push(scripted.calls.map(({ prompt, tools }) => JSON.stringify([prompt, tools])));
  }
  return results.flat();
}

describe('a model that goes on after another planner', () => {
  it('is told what was said and what a plan came to, and is shown the calls of tools alone', async () => {
    for (const request of await asked([PLAN, MESSAGE])) {
      expect(request).not.toMatch(NAMES);
      expect(request).toContain('<also_done what=\\"message_to_user\\">\\n{\\"said\\":\\"Oslo\\"}');
      expect(request).toContain('<also_done what=\\"result_of_plan\\">\\n{\\"city\\":\\"Oslo\\"}');
      expect(request).toContain('<also_done what=\\"message_to_user\\">\\nStill here.');
      expect(request).toMatch(/"toolName":"search"|\\"tool\\":\\"search\\"/);
    }
  });

  it('is told of tasks, where it may start none, and of what they came to', async () => {
    const both: Decision = {
      kind: 'call_parallel',
      branches: [
        { tool: '_spawn_task', args: { spec: { description: 'count', query: 'q2' } } },
        ...[{ tool: 'search', args: {} }],
      ],
    };
    for (const request of await asked([spawns('q1'), awaits('p.0.0'), both])) {
      expect(request).not.toMatch(NAMES);
      expect(request).toContain('<also_done what=\\"start_of_task\\">');
      expect(request).toMatch(/<also_done what=."wait_for_task.">.*done by the task/);
    }
  });

  it('is shown them as the calls that they were, where it may make them', async () => {
    for (const request of await asked([spawns('q1'), awaits('p.0.0')], { tasks: true })) {
      expect(request).not.toContain('also_done');
      expect(request).toMatch(/"toolName":"_spawn_task"|\\"tool\\":\\"_spawn_task\\"/);
    }
  });

  it('is not told of a reserved name that the run must not use', async () => {
    const context = { hints: { disallowedTools: ['_spawn_task', 'fail'] } };
    for (const request of await asked([], { tasks: true }, context)) {
      expect(request).not.toMatch(NAMES);
      expect(request).toContain('Do not use: fail');
    }
  });

  it('is told of a large result of a plan by what it is', async () => {
    const city = 'ø'.repeat(20_000);
    const large: Decision = {
      kind: 'call_parallel',
      plan: 'large',
      branches: [{ tool: '_message', args: city }, ...[{ id: 'f', tool: '_finish', args: { city }, after: ['0'] }]],
    };
    for (const request of await asked([large])) {
      expect(request).not.toMatch(NAMES);
      expect(request).toContain('read the whole');
    }
  });
});

describe('a summariser, and a model after it', () => {
  const steps = [
    stepOf(0, PLAN, { outcomes: [value('Oslo'), value({ said: 'Oslo' }), value({ city: 'Oslo' })] }),
    stepOf(1, spawns('q1'), { outcomes: [value({ task_id: 'p.1.0' })] }),
    stepOf(2, MESSAGE, { outcomes: [failure('tool_failed', 'No.')] }),
    stepOf(3, call('search', {}, 'c3')),
  ];
  const summary = { goals: ['g'], facts: ['f'], pending: [], lastOutputDigest: 'd', note: '' };

  it('read no reserved name', () => {
    const asking = JSON.stringify(summaryRequest(runView({ steps }), 4));
    expect(asking).not.toMatch(NAMES);
    expect(asking).toContain('message_to_user');
    for (const how of [NATIVE, TEXT]) {
      const after = messagesOf(runView({ steps, compaction: { summary, before: 3, tokenEstimate: 1 } }), how);
      expect(JSON.stringify(after)).not.toMatch(NAMES);
      expect(JSON.stringify(after)).toContain('step 2: start_of_task');
    }
  });
});

describe('a pipeline that plans once more', () => {
  it('tells its model what was said as a message, and not as a call of a tool', async () => {
    const plan = (steps: Json): ScriptedReply => ({ text: JSON.stringify({ planId: 'p', steps }) });
    const scripted = scriptedModel([
      plan([
        { id: 'm', type: 'message', input: 'I begin.' },
        { id: 'x', type: 'tool', toolId: 'fail', input: {}, after: ['m'] },
      ]),
      plan([{ id: 'f', type: 'finish', input: 'enough' }]),
    ]);
    const planner = pipeline({ model: { model: scripted, toolCalls: 'text' }, replans: 1 });
    const run = await start(world({ planner, tools: [search, fail] }), { identity: PARENT });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'enough' });
    const again = JSON.stringify(scripted.calls[1]?.prompt);
    expect(again).not.toMatch(NAMES);
    expect(again).toContain('message_to_user');
  });
});

describe('a model that makes up a reserved call', () => {
  const say = { tool: '_message', args: { text: 'hello' } };
  const answers = async (first: ScriptedReply) => {
    const scripted = scriptedModel([first, { text: 'All done.' }]);
    const run = await start(world({ planner: react({ model: scripted }), tools: [search] }), { identity: PARENT });
    expect(await run.result()).toMatchObject({ answer: 'All done.' });
    const { steps } = await run.trajectory();
    return { outcomes: steps[0]?.calls.map(({ outcome }) => outcome), next: JSON.stringify(scripted.calls[1]?.prompt) };
  };
  const noSuch = {
    kind: 'error',
    error: { code: 'tool_not_found', message: expect.stringContaining('text of your reply') },
  };

  it('hears that its words belong into the reply, and its other calls are made', async () => {
    expect((await answers({ calls: [say] })).outcomes).toEqual([noSuch]);
    const both = await answers({ calls: [say, { tool: 'search', args: {} }] });
    expect(both.outcomes).toEqual([noSuch, { kind: 'value', value: 'Oslo' }]);
  });

  it('is not taught how to end by a call that it was never shown', async () => {
    const { outcomes, next } = await answers({ calls: [{ tool: '_finish', args: {} }] });
    expect(outcomes).toMatchObject([{ error: { code: 'finish_invalid' } }]);
    expect(next).toContain('a reply without one is the answer');
  });
});
