/** The content of a summary, which takes the place of steps that the model will not see again. */
import { isJsonObject, type Json, type JsonObject, type Summary } from '#core';

const texts = (description: string): JsonObject => ({ type: 'array', items: { type: 'string' }, description });
const text = (description: string): JsonObject => ({ type: 'string', description });

export const SUMMARY_PARTS: readonly string[] = ['goals', 'facts', 'pending', 'lastOutputDigest', 'note'];

/** JSON Schema of a summariser's answer. Goals, facts and the digest must say something, too. */
export const SUMMARY_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    goals: texts('What is to be reached, in the words of the user where they matter. At least one.'),
    facts: texts(
      'What was found out or done, with exact names, numbers, ids and references, and what failed. At least one.',
    ),
    pending: texts('What is still to be done; may be empty.'),
    lastOutputDigest: text('What the newest of these steps came to.'),
    note: text('Anything else that is needed to go on; may be empty.'),
  },
  required: SUMMARY_PARTS,
  additionalProperties: false,
};

/** A placeholder text that says nothing. */
const PLACEHOLDER = /^(?:n\/?a|none|null|nil|undefined|unknown|nothing|empty|tbd|todo|string|text)[.!]?$/i;
const WORD = /[\p{L}\p{N}]/u;

/**
 * The summary, or the parts of it that say nothing.
 * @param value that fits the schema.
 */
export function readSummary(value: Json): Summary | { readonly empty: readonly string[] } {
  const given = isJsonObject(value) ? value : {};
  const goals = textsOf(given['goals']);
  const facts = textsOf(given['facts']);
  const lastOutputDigest = textOf(given['lastOutputDigest']);
  const summary = { goals, facts, pending: textsOf(given['pending']), lastOutputDigest, note: textOf(given['note']) };
  if (goals.some(isSaid) && facts.some(isSaid) && isSaid(lastOutputDigest)) return summary;
  return { empty: Object.entries(summary).flatMap(([part, said]) => ([said].flat().some(isSaid) ? [] : [part])) };
}

function isSaid(said: string): boolean {
  return WORD.test(said) && !PLACEHOLDER.test(said) && !DESCRIPTIONS.has(said);
}

/** Small models give the schema back, filled with itself. */
const DESCRIPTIONS: ReadonlySet<string> = new Set(
  Object.values(SUMMARY_SCHEMA['properties'] as JsonObject).map((part) =>
    textOf(isJsonObject(part) ? part['description'] : ''),
  ),
);

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.map(textOf).filter((item) => item !== '') : [];
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value.trim() : '';
}
