/** Reads a summariser's reply: the summary may stand in a fence, behind thoughts, or between words. */
import { asJson, type CompactionErrorCode, isJsonObject, type Json, jsonEquals, type Summary } from '#core';
import {
  answerStart,
  coerceToSchema,
  createReader,
  DEFAULT_PARSE_LIMITS,
  looseToJson,
  nextOpener,
  readContainer,
  workFor,
} from '#parse';
import { readSummary, SUMMARY_PARTS, SUMMARY_SCHEMA } from '#prompt';
import { misfitsIn } from './misfits.ts';

export type SummaryReading =
  | { readonly summary: Summary }
  | { readonly refused: { readonly code: CompactionErrorCode; readonly message: string } };

/** The last object of the text that is a whole summary; else what is wrong with the last that was to be one. */
export function summaryIn(text: string, earlier: Summary | undefined): SummaryReading {
  let last: SummaryReading = refuse('empty_summary', 'The summariser gave no JSON object.');
  let found: SummaryReading | undefined;
  for (const { value, isCut } of objectsIn(text)) {
    const read = isCut ? refuse('invalid_summary', 'The summary ends before it is whole.') : readOne(value, earlier);
    if ('summary' in read) found = read;
    // A value inside an object is not better than the object.
    else if (isMeant(value)) last = read;
  }
  return found ?? last;
}

function refuse(code: CompactionErrorCode, message: string): SummaryReading {
  return { refused: { code, message } };
}

function isMeant(value: Json): boolean {
  return isJsonObject(value) && SUMMARY_PARTS.some((key) => Object.hasOwn(value, key));
}

function readOne(value: Json, earlier: Summary | undefined): SummaryReading {
  const { value: fitting, issues } = coerceToSchema(value, SUMMARY_SCHEMA);
  const misfits = misfitsIn(issues);
  if (misfits !== undefined) return refuse('invalid_summary', `The summary does not fit its schema: ${misfits}.`);
  const read = readSummary(fitting);
  if ('empty' in read) {
    const message = `The summary says nothing as ${read.empty.join(', ')}.`;
    return refuse(read.empty.length === SUMMARY_PARTS.length ? 'empty_summary' : 'invalid_summary', message);
  }
  if (earlier !== undefined && jsonEquals(asJson(read), asJson(earlier))) {
    return refuse('invalid_summary', 'The summary is the earlier one again, and says nothing of the steps since.');
  }
  return { summary: read };
}

const OPENER = /[{<]/g;

/** The objects of a text in order, also those inside others, but none of a thought. */
function* objectsIn(text: string): Generator<{ readonly value: Json; readonly isCut: boolean }> {
  const { maxChars, maxDepth } = DEFAULT_PARSE_LIMITS;
  if (text.length > maxChars) return;
  const work = workFor(text, DEFAULT_PARSE_LIMITS);
  const end = text.trimEnd().length;
  for (
    let at = nextOpener(text, OPENER, answerStart(text), work);
    at !== undefined;
    at = nextOpener(text, OPENER, at + 1, work)
  ) {
    const reader = createReader(text, at, maxDepth, work);
    const value = readContainer(reader);
    if (value === undefined) continue;
    // Where brackets are missing at the end of the text, more may be missing than brackets.
    const isOpen = reader.isLoose && reader.at >= end && text[end - 1] !== '}';
    yield { value: looseToJson(value), isCut: reader.isTruncated || isOpen };
  }
}
