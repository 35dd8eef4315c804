/** What is looked up for the prompt of a plan: never a reason not to plan, and never more than its share of the prompt. */
import type { LanguageModelV4Message } from '@ai-sdk/provider';
import { type Clock, type ErrorData, oneLine, type Remark, type RunView } from '#core';
import { BrokenReply, estimateTokens, failureData, Watch } from '#model';
import { contextTurns, quotedJson, userTurn } from '#prompt';

export interface RetrievedDocument {
  readonly id: string;
  readonly text: string;
}

export interface Retriever {
  /** The best document first. It may heed the signal, and is not waited for once that is aborted. */
  retrieve(
    query: { readonly goal: string; readonly run: RunView },
    signal: AbortSignal,
  ): Promise<readonly RetrievedDocument[]>;
}

export interface RetrieveOptions {
  /** Estimated tokens that the block may take, its frame included. */
  readonly tokens: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** What an error says passes through it. */
  readonly redact: (text: string) => string;
}

export interface Retrieved {
  /** The documents as untrusted data, framed. Absent: there is nothing to show. */
  readonly text?: string;
  /** Absent when there is no retriever. */
  readonly remark?: Remark<'plan.retrieved'>;
}

/** @throws the signal's reason when it is aborted; every other failure becomes the error of the remark. */
export async function retrieveFor(
  retriever: Retriever | undefined,
  run: RunView,
  { tokens, timeoutMs, clock, signal, redact }: RetrieveOptions,
): Promise<Retrieved> {
  if (retriever === undefined) return {};
  const watch = new Watch({ signal, clock, stallMs: timeoutMs });
  try {
    const found: unknown = await watch.until(retriever.retrieve({ goal: run.goal, run }, watch.signal));
    return shown(documentsIn(found), tokens);
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = failureOf(error, timeoutMs);
    return {
      remark: { type: 'plan.retrieved', documents: 0, tokens: 0, cut: 0, error: { code, message: redact(message) } },
    };
  } finally {
    watch.end(true);
  }
}

function failureOf(error: unknown, timeoutMs: number): ErrorData {
  if (error instanceof BrokenReply) {
    return { code: 'retrieval_timeout', message: `The retriever gave nothing within ${timeoutMs} ms.` };
  }
  return { code: 'retrieval_failed', message: failureData(error).message };
}

/** @throws TypeError for a value that is not a list of documents. */
function documentsIn(found: unknown): readonly RetrievedDocument[] {
  if (Array.isArray(found) && found.every(isDocument)) return found;
  throw new TypeError('The retriever must give a list of { id, text }, both of them texts.');
}

function isDocument(given: unknown): given is RetrievedDocument {
  if (typeof given !== 'object' || given === null) return false;
  const { id, text } = given as Record<string, unknown>;
  return typeof id === 'string' && typeof text === 'string';
}

function shown(found: readonly RetrievedDocument[], tokens: number): Retrieved {
  const { kept, cut } = fitted(found, tokens);
  const text = kept.length === 0 ? '' : frame(kept);
  const remark = { type: 'plan.retrieved' as const, documents: kept.length, tokens: tokensOf(text), cut };
  return text === '' ? { remark } : { text, remark };
}

/** Tokens are counted as characters / 4; a text and its message have 5 of their own. */
const CHARS_PER_TOKEN = 4;
const OVERHEAD_TOKENS = 5;
/** The least part of a document that is worth showing when the whole does not fit, in characters. */
const LEAST_CHARS = 80;
const MAX_ID_CHARS = 200;

/** As it stands in the prompt. */
interface ShownDocument extends RetrievedDocument {
  readonly left_out?: string;
}

/** The documents that fit, in their order. The first that does not fit is shortened, and later ones are left out. */
function fitted(found: readonly RetrievedDocument[], tokens: number): { kept: ShownDocument[]; cut: number } {
  let left = (tokens - OVERHEAD_TOKENS) * CHARS_PER_TOKEN - frame([]).length;
  const kept: ShownDocument[] = [];
  for (const { id, text } of found) {
    const document: ShownDocument = { id: oneLine(id, MAX_ID_CHARS), text };
    const chars = charsOf(document);
    if (chars > left) {
      const short = shortened(document, left);
      if (short !== undefined) kept.push(short);
      break;
    }
    kept.push(document);
    left -= chars;
  }
  const whole = kept.filter(({ text }, index) => text === found[index]?.text).length;
  return { kept, cut: found.length - whole };
}

function shortened({ id, text }: RetrievedDocument, chars: number): ShownDocument | undefined {
  const upTo = (end: number): ShownDocument => ({
    id,
    text: text.slice(0, end).toWellFormed(),
    left_out: `${text.length - end} characters`,
  });
  let low = 0;
  let high = Math.min(text.length, Math.max(chars, 0));
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (charsOf(upTo(middle)) <= chars) low = middle;
    else high = middle - 1;
  }
  return low < LEAST_CHARS ? undefined : upTo(low);
}

/** In the frame: as JSON, quoted, and a comma. */
function charsOf(document: ShownDocument): number {
  return quotedJson(JSON.stringify(document)).length + 1;
}

function frame(documents: readonly ShownDocument[]): string {
  const retrieved = documents.map((document) => ({ ...document }));
  return contextTurns({ retrieved }).map(messageText).join('\n');
}

/** The text of a message; what is not text is left out. */
export function messageText({ content }: LanguageModelV4Message): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function tokensOf(text: string): number {
  return text === '' ? 0 : estimateTokens({ prompt: [userTurn(text)] });
}
