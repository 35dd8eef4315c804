import type { JsonObject } from '#core';
import type { Journal } from '#journal';
import { react } from '#planners/react';
import { createRuntime, type Runtime } from '#runtime';
import { pathsOf, storedShot } from './pictures.ts';
import { answerOf, type Wire, whole, wire } from './pieces.ts';
import { anthropic } from './replies/anthropic.ts';
import type { Said } from './replies/saying.ts';

export const STEPS = 40;
/** So many stay when the others leave, and twice as many are the most. */
export const KEPT = 8;
export const LAST = { said: [{ text: 'Done.' }], stop: 'end' } as const;

export function calls(step: number, many = 1): readonly Said[] {
  return Array.from({ length: many }, (_, at) => ({
    call: `call_${step}_${at}`,
    args: `{"city":"${step * many + at}"}`,
  }));
}

/** A run that takes pictures at each step. */
export function looking(journal: Journal, many = 1): { readonly runtime: Runtime; readonly sent: Wire } {
  const said = Array.from({ length: STEPS }, (_, step) => ({ said: calls(step, many), stop: 'calls' as const }));
  const sent = wire(
    [...said, LAST].map((saying) => answerOf(anthropic, saying, false)),
    whole,
  );
  const model = anthropic.model({ baseURL: 'http://provider.test', fetch: sent.fetch });
  const runtime = createRuntime({ planner: react({ model }), tools: [storedShot()], journal });
  return { runtime, sent };
}

/** The messages of a request, without the marks of the cache, which move. */
export function messagesOf(body: JsonObject | undefined): readonly string[] {
  const messages = body?.['messages'] as readonly JsonObject[];
  return messages.map((message) =>
    JSON.stringify(message, (key, value) => (key === 'cache_control' ? undefined : value)),
  );
}

export const picturesIn = (body: JsonObject | undefined): number =>
  pathsOf(body?.['messages'] as never, 'iVBORw0KGgo').length;
