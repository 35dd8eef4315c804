import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { local, type Outcome, type SteeringTurn, type Step } from '#core';
import { react } from '#planners/react';
import { runView, type ScriptedReply, scriptedModel, toolView } from '#testing';
import { ask } from '../kit/ask.ts';
import { failure, stepOfMove, value } from '../kit/steps.ts';
import { chatFault, withoutReminder } from './well-formed.ts';

const tools = toolView(['search', 'read']);

const call = fc.record({
  id: fc.constantFrom('', 'a', 'b', 'react.callid.1', 'c'),
  tool: fc.constantFrom('search', 'read', '_finish', ''),
  input: fc.constantFrom('{}', '{"q":"x"}', '{"q": "x', '"text"', ''),
});
const reply = fc.record(
  {
    text: fc.constantFrom('', 'a\n\tb', 'über 🙂'),
    reasoning: fc.constantFrom('hm', ''),
    calls: fc.array(call, { minLength: 1, maxLength: 4 }),
    finish: fc.constantFrom('tool-calls' as const, 'length' as const, 'stop' as const),
    signed: fc.boolean(),
    rejected: fc.boolean(),
    steered: fc.boolean(),
    streaming: fc.boolean(),
    outcome: fc.constantFrom(value('v'), value({ n: 1 }), failure('tool_failed', 'It broke.')),
  },
  { requiredKeys: ['calls', 'rejected', 'steered', 'streaming', 'signed', 'outcome'] },
);

function scripted({
  text,
  reasoning,
  calls,
  finish,
  signed,
}: Omit<ScriptedReply, 'calls'> & {
  calls: { id: string; tool: string; input: string }[];
  signed: boolean;
}): ScriptedReply {
  const rest = { ...(text === undefined ? {} : { text }), ...(finish === undefined ? {} : { finish }) };
  if (!signed) return { ...rest, calls, ...(reasoning === undefined ? {} : { reasoning }) };
  return {
    ...rest,
    content: [
      { type: 'reasoning', text: reasoning ?? '', providerMetadata: { anthropic: { signature: 's' } } },
      ...calls.map(({ id, tool, input }) => ({ type: 'tool-call' as const, toolCallId: id, toolName: tool, input })),
    ],
  };
}

/** What a provider with a prefix cache sees of a request. */
const bytes = ({ tools: declared, prompt }: LanguageModelV4CallOptions) =>
  `${JSON.stringify(declared)}${prompt.map((message) => JSON.stringify(message)).join('')}`;

describe('requests of one run', () => {
  it('RA-20, RA-36, RA-37 only grow, pair every call with one result, and are the same after a restart', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(reply, { minLength: 1, maxLength: 8 }), async (replies) => {
        const identity = local('ana');
        const history: never[] = [];
        const model = scriptedModel((_, index) => scripted(replies[index] as (typeof replies)[number]));
        const planner = react({ model });
        const steps: Step[] = [];
        let steering: SteeringTurn[] = [];
        for (const [index, { rejected, steered, streaming, outcome }] of replies.entries()) {
          const message = { id: `m${index}`, type: 'USER_MESSAGE' as const, payload: { message: `m${index}` } };
          if (steered) steering = [...steering, { atStep: steps.length, control: message }];
          const view = runView({ identity, history, tools, steps: [...steps], steering, streaming });
          const move = await ask(planner, view);
          const again = scriptedModel(() => ({ text: 'x' }));
          const asked = model.calls.length;
          await ask(react({ model: again }), view);
          // At the end of the ladder nobody is asked.
          if (asked > index) expect(again.calls[0]?.prompt).toEqual(model.calls.at(-1)?.prompt);
          else expect(again.calls).toEqual([]);
          if (move.decision.kind === 'finish' && move.fault === undefined) break;
          const outcomes: Outcome[] = new Array(4).fill(outcome);
          steps.push(
            stepOfMove(
              steps.length,
              move,
              outcomes,
              rejected ? { code: 'invalid_decision', message: 'no' } : undefined,
            ),
          );
        }
        for (const [index, request] of model.calls.entries()) {
          expect(chatFault(request.prompt)).toBeUndefined();
          const former = model.calls[index - 1];
          if (former !== undefined) expect(bytes(request).startsWith(bytes(withoutReminder(former)))).toBe(true);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('another run under the same identity object, or other tools, starts over', async () => {
    const identity = local('ana');
    const model = scriptedModel(() => ({ calls: [{ id: 'a', tool: 'search' }] }));
    const planner = react({ model });
    const first = stepOfMove(0, await ask(planner, runView({ identity, tools })));
    await ask(planner, runView({ identity, tools, steps: [first] }));
    const other = stepOfMove(0, { decision: { kind: 'call_tool', tool: 'read', args: {} } });
    await ask(planner, runView({ identity, tools, steps: [other] }));
    await ask(planner, runView({ identity, tools, query: 'else' }));
    await ask(planner, runView({ identity, tools: toolView(['read']), steps: [first] }));
    const calls = (request: LanguageModelV4CallOptions | undefined) =>
      request?.prompt.flatMap(({ role, content }) =>
        role === 'assistant' ? content.map((part) => (part.type === 'tool-call' ? part.toolName : '')) : [],
      );
    expect(model.calls.map(calls)).toEqual([[], ['search'], ['read'], [], ['search']]);
    expect(JSON.stringify(model.calls[3]?.prompt)).toContain('else');
    expect(JSON.stringify(model.calls[4]?.prompt[0])).not.toContain('- search');
  });
});
