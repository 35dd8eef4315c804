/** Pictures of the newest step that leave no room for a request. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { expect, it } from 'vitest';
import type { ModelOutputPart } from '#core';
import { react } from '#planners/react';
import { runView } from '#testing';
import { call } from '../kit/decisions.ts';
import { stepOf } from '../kit/steps.ts';

it('leave with the result that has them, which becomes a preview', async () => {
  const files = Array.from({ length: 12 }, (_, at): ModelOutputPart => {
    return { type: 'file', artifactRef: `art_${at}`, mime: 'image/png', sizeBytes: 3 };
  });
  const outcome = { kind: 'value', value: null, modelOutput: { type: 'content', value: files } } as const;
  const bytes = new Map(files.map((_, at) => [`art_${at}`, Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')]));
  const planner = react({ model: createAnthropic({ apiKey: 'k' })('claude-sonnet-4-5') });
  const view = (tokens: number) =>
    runView({
      steps: [stepOf(0, call('look'), { outcomes: [outcome] })],
      media: { from: 0, bytes },
      contextLimits: [{ model: 'claude-sonnet-4-5', tokens }],
    });
  const { signal } = new AbortController();
  expect(await planner.compact?.(view(1_500), signal)).toMatchObject({ shorten: { calls: [0] } });
  expect(await planner.compact?.(view(50_000), signal)).toBeUndefined();
});
