/** Reads an answer that has to fit a schema. */
import type { Json, JsonObject } from '#core';
import { coerceToSchema } from '#parse';
import { misfitsIn } from './misfits.ts';

/** The answer as the schema wants it, or what does not fit, in words for the model. */
export function answerReader(
  schema: JsonObject,
): (answer: Json) => { readonly answer: Json } | { readonly misfit: string } {
  return (answer) => {
    const read = coerceToSchema(typeof answer === 'string' ? withoutFence(answer) : answer, schema);
    const misfits = misfitsIn(read.issues);
    if (misfits === undefined) return { answer: read.value };
    return { misfit: `The answer does not fit its schema: ${misfits}.` };
  };
}

/** The text inside a fence that encloses all of it; models like to put JSON into one. */
export function withoutFence(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```') || trimmed.length < 6) return text;
  return trimmed.slice(trimmed.indexOf('\n') + 1, -3).trim();
}
