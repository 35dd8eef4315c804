/** Runs in the middle of which a planner is asked by hand. */
import type { Decision, Json, Outcome, RunView, Step, ToolSchema } from '#core';
import { runView, toolView } from '../run-view.ts';
import { LOOK_UP, WORK } from './kit.ts';

const error = (code: string): { code: string; message: string } => ({ code, message: `It came to ${code}.` });
export const value = (json: Json): Outcome => ({ kind: 'value', value: json });
const failed = (code: string): Outcome => ({ kind: 'error', error: error(code) });

/** A step that was carried out, with an outcome for each call. */
function closed(index: number, decision: Decision, outcomes: readonly Outcome[]): Step {
  const calls = outcomes.map((outcome, call) =>
    Object.freeze({ outcome, startedAt: index, endedAt: index + 1, attempts: 1, seq: index * 10 + call + 2 }),
  );
  return Object.freeze({ index, decision, calls: Object.freeze(calls), startedAt: index, endedAt: index + 1 });
}

export function lookUpStep(index: number, about: string, outcome: Outcome = value(`looked up: ${about}`)): Step {
  return closed(index, { kind: 'call_tool', tool: LOOK_UP, args: { about }, callId: `call_${index}` }, [outcome]);
}

function schema(name: string, properties: Record<string, Json>): ToolSchema {
  const inputSchema = { type: 'object', properties, required: Object.keys(properties) };
  const description = `The tool ${name}.`;
  return { name, description, inputSchema, effect: 'read', tags: [], loading: 'always', examples: [] };
}

export const TOOLS: RunView['tools'] = toolView([schema(LOOK_UP, { about: { type: 'string' } }), schema(WORK, {})]);

export interface AskedFor {
  readonly when: string;
  readonly view: RunView;
}

/** What people ask every day, with and without tools, at the start and on the way. */
export const ORDINARY: readonly AskedFor[] = [
  { when: 'a greeting', view: runView({ query: 'Hello!' }) },
  { when: 'a question, with tools', view: runView({ query: 'What is the weather in Lisbon?', tools: TOOLS }) },
  {
    when: 'the next question of a conversation',
    view: runView({
      query: 'And tomorrow?',
      history: [
        { role: 'user', text: 'What is the weather in Lisbon?' },
        { role: 'assistant', text: 'Sunny, 24 degrees.' },
      ],
      tools: TOOLS,
    }),
  },
  {
    when: 'a long request in several lines and scripts',
    view: runView({
      query: `Fix this:\n\`\`\`js\n${'f("}{", \'\\n\');\n'.repeat(200)}\`\`\`\nБыстро! 急いで 👩‍👩‍👧‍👦`,
      tools: TOOLS,
    }),
  },
  {
    when: 'a goal that has changed',
    view: runView({ query: 'Plan a trip', goal: 'Plan a trip to Porto', tools: TOOLS }),
  },
  {
    when: 'the step after a call',
    view: runView({ query: 'What is the weather?', tools: TOOLS, steps: [lookUpStep(0, 'the weather')] }),
  },
  {
    when: 'the step after a call that failed',
    view: runView({
      query: 'What is the weather?',
      tools: TOOLS,
      steps: [lookUpStep(0, 'the weather', failed('tool_failed')), lookUpStep(1, 'the weather')],
    }),
  },
];

const SPAWN: Decision = {
  kind: 'spawn_task',
  task: 'background',
  spec: { description: 'a task', query: 'do it' },
  callId: 'call_0',
};

/** A run after each kind of step, with each kind of outcome: what follows is one of the six all the same. */
export const AFTER: readonly AskedFor[] = [
  ...(['tool_not_found', 'tool_timeout', 'tool_rejected', 'budget_exceeded'] as const).map((code) =>
    after(`a call that came to ${code}`, lookUpStep(0, 'x', failed(code))),
  ),
  ...(['unknown', 'cancelled', 'skipped'] as const).map((kind) =>
    after(`a call that is ${kind}`, lookUpStep(0, 'x', { kind, error: error(kind) })),
  ),
  after(
    'a parallel call in parts',
    closed(
      0,
      {
        kind: 'call_parallel',
        branches: [
          { tool: LOOK_UP, args: { about: 'x' }, callId: 'call_0' },
          { tool: LOOK_UP, args: { about: 'y' }, callId: 'call_1' },
        ],
      },
      [value('looked up: x'), failed('tool_failed')],
    ),
  ),
  after('a task', closed(0, SPAWN, [value({ task_id: 't', kind: 'background', status: 'spawned' })])),
  after('a task that was refused', closed(0, SPAWN, [failed('task_limit')])),
  after(
    'an await that a message ended',
    closed(0, { kind: 'await_task', taskId: 't', callId: 'call_0' }, [value({ task_id: 't', status: 'running' })]),
  ),
  ...(['approve', 'reject', 'resume', 'timeout', 'superseded'] as const).map((verdict) =>
    after(
      `a pause that was answered with ${verdict}`,
      closed(0, { kind: 'request_pause', reason: 'await_input' }, [{ kind: 'verdict', verdict }]),
    ),
  ),
];

function after(what: string, step: Step): AskedFor {
  return {
    when: `the step after ${what}`,
    view: runView({ query: 'Go on', tools: TOOLS, steps: [step], tasks: true }),
  };
}
