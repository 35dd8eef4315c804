/** A model that reads out of runs that have ended what is worth remembering of their users. */
import { type EndedRun, type ExtractedFact, type PlannerMemory, systemClock } from '#core';
import { askStructured, readyModel } from '#model';
import { EXTRACTION_SCHEMA, extractionRequest, readExtraction } from '#prompt';
import { objectsIn } from './compact.ts';
import type { ReactOptions } from './options.ts';

/** @throws PilotageError `invalid_config` for a value that is neither a function nor a model. */
export function extractorOf({
  memory,
  prices,
  retries,
  stallMs,
  clock = systemClock,
}: ReactOptions): PlannerMemory['extract'] {
  const given = memory?.extract;
  if (given === undefined || typeof given === 'function') return given;
  const model = readyModel(given, prices === undefined ? {} : { prices });
  return async (ended: EndedRun): Promise<readonly ExtractedFact[]> => {
    const made = await askStructured({
      model,
      request: { prompt: extractionRequest(ended) },
      schema: EXTRACTION_SCHEMA,
      name: 'facts',
      parse: factsIn,
      signal: new AbortController().signal,
      clock,
      ...(retries === undefined ? {} : { retries }),
      ...(stallMs === undefined ? {} : { stallMs }),
    });
    if (made.ok) return made.value;
    throw made.error;
  };
}

/** @throws Error for an answer without a list of facts. */
function factsIn(text: string): readonly ExtractedFact[] {
  for (const { value, isCut } of objectsIn(text)) {
    const facts = isCut ? undefined : readExtraction(value);
    if (facts !== undefined) return facts;
  }
  throw new Error('The model gave no JSON object with a list of facts.');
}
