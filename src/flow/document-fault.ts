/** What is wrong with a flow document, and where. */
import { nearest, oneLine, PilotageError } from '#core';

export interface DocumentPosition {
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
}

export interface DocumentFault extends Partial<DocumentPosition> {
  readonly code: string;
  readonly message: string;
  /** JSON Pointer from the top of the document. */
  readonly path: string;
}

/** Where something stands: a document that was given as an object has paths alone. */
export interface Spot {
  readonly path: string;
  readonly place?: DocumentPosition;
}

export const TOP: Spot = { path: '' };

export function faultAt(code: string, { path, place }: Spot, message: string): DocumentFault {
  return { code, message, path: path === '' ? path : oneLine(path, MAX_PATH_CHARS), ...place };
}

const MAX_PATH_CHARS = 300;
const MAX_SHOWN = 50;

/** @param source the file, or what stands for it. */
export function documentInvalid(source: string, faults: readonly DocumentFault[]): PilotageError {
  const order = [...faults].sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  const shown = order.slice(0, MAX_SHOWN);
  const lines = shown.map((fault) => lineOf(source, fault));
  const more = order.length > shown.length ? [`And ${order.length - shown.length} more.`] : [];
  const data = { faults: shown.map((fault) => ({ ...fault })) };
  return new PilotageError('flow_invalid', ['The flow document is wrong.', ...lines, ...more].join('\n'), { data });
}

function lineOf(source: string, { path, line, column, message }: DocumentFault): string {
  const place = line === undefined ? '' : `:${line}:${column}`;
  return `${source}${place}${path === '' ? '' : ` ${path}`}: ${message}`;
}

/** A name from the document as it stands in a message. */
export function quotedName(name: string): string {
  return JSON.stringify(oneLine(name, MAX_NAME_CHARS));
}

const MAX_NAME_CHARS = 64;
const MAX_LISTED = 20;

/** What to write in place of an unknown word. @param of what `known` are: `keys here`. */
export function advice(word: string, known: readonly string[], of: string): string {
  const near = nearest(word, known);
  if (near !== undefined) return `Did you mean ${quotedName(near)}?`;
  if (known.length === 0) return `There are no ${of}.`;
  const more = known.length > MAX_LISTED ? ` and ${known.length - MAX_LISTED} more` : '';
  return `The ${of} are ${known.slice(0, MAX_LISTED).map(quotedName).join(', ')}${more}.`;
}
