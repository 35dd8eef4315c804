import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import { describe, it } from 'vitest';
import { pipeline } from '#planners/pipeline';
import { plannerConformance, type ScriptedModel } from '#testing';
import { row } from './pipeline-play.ts';

/** Says as a plan what the scripts of the kit say as native calls and as answers. */
function plansOf(model: ScriptedModel, tools: readonly string[]): LanguageModelV4 {
  const declared = tools.map((name) => ({ type: 'function' as const, name, inputSchema: { type: 'object' as const } }));
  const generate = (request: LanguageModelV4CallOptions) => model.doGenerate({ ...request, tools: declared });
  return {
    ...model,
    async doGenerate(request) {
      const { content, ...rest } = await generate(request);
      const steps = stepsOf(content);
      return { ...rest, content: [{ type: 'text', text: JSON.stringify({ planId: 'kit', steps }) }] };
    },
    async doStream(request) {
      const { content, finishReason, usage } = await generate(request);
      const parts: LanguageModelV4StreamPart[] = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: 't' },
        ...stepsOf(content).map((step) => ({ type: 'text-delta' as const, id: 't', delta: `${row(step)}\n` })),
        { type: 'text-end', id: 't' },
        { type: 'finish', finishReason, usage },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  };
}

function stepsOf(content: readonly LanguageModelV4Content[]) {
  return content.flatMap((part, index) => {
    if (part.type === 'text') return [{ id: `s${index}`, type: 'finish', input: part.text }];
    if (part.type !== 'tool-call') return [];
    return [{ id: `s${index}`, type: 'tool', toolId: part.toolName, input: JSON.parse(part.input) }];
  });
}

describe.each([{ stream: false }, { stream: true }])('with $stream for stream', ({ stream }) => {
  const cases = plannerConformance({
    name: 'pipeline',
    capabilities: { modelDriven: true, canPause: false, wakeRoundTrip: false, honoursCancel: true },
    skip: { 'parallel shape': 'the branches of its plans have ids of their own, and answer no call of a model' },
    make: ({ name, model, tools }) =>
      // Whatever is wrong with a reply is to reach the planner as it is; so is a reply that does not come.
      pipeline({ stream, model: name === 'malformed output' ? model : plansOf(model, Object.values(tools)) }),
  });
  for (const { name, skip, run } of cases) it.skipIf(skip !== undefined)(name, run);
});
