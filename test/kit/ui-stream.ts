/** The order rules of a UI message stream, held against what a server has really sent. */
import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from 'ai';

export type Chunk = UIMessageChunk;

/** Chunks of one stream, and what the message has before: nothing, for a stream from the start. */
export interface SentStream {
  readonly chunks: readonly Chunk[];
  /** Calls and approvals that the client has in the message already. */
  readonly knownCalls: ReadonlySet<string>;
  readonly knownApprovals: ReadonlySet<string>;
}

/**
 * The body of a response, chunk by chunk, checked with the client's own schema.
 * @throws Error for what is no event of the form `data: {json}`, for a type that the client does not know, and where `[DONE]` is not the end.
 */
export async function chunksIn(body: string): Promise<readonly Chunk[]> {
  const events = body.split('\n\n').filter((event) => event !== '' && event !== ':');
  if (!body.endsWith('\n\n') || events.pop() !== 'data: [DONE]')
    throw new Error('The stream does not end with [DONE].');
  const schema = uiMessageChunkSchema();
  return Promise.all(
    events.map(async (event) => {
      if (!event.startsWith('data: {') || event.includes('\n')) throw new Error(`This is no event: ${event}`);
      const checked = await schema.validate?.(JSON.parse(event.slice('data: '.length)));
      if (checked?.success !== true) throw new Error(`The client does not know this chunk: ${event}`);
      return checked.value;
    }),
  );
}

/** What the client makes of the chunks. @returns its errors. */
export async function clientErrors(chunks: readonly Chunk[], message?: UIMessage): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  const stream = ReadableStream.from(chunks.filter(({ type }) => type !== 'error')) as ReadableStream<Chunk>;
  const read = readUIMessageStream({
    stream,
    ...(message === undefined ? {} : { message: structuredClone(message) }),
    onError: (error) => errors.push(error),
  });
  try {
    for await (const _ of read);
  } catch (error) {
    errors.push(error);
  }
  return errors;
}

/** Each rule, with the first chunk that breaks it, if any does. */
export const ORDER_RULES: Readonly<Record<string, (stream: SentStream) => Chunk | undefined>> = {
  'a stream begins with its one start': ({ chunks }) => {
    const at = chunks.findIndex(({ type }) => type === 'start');
    const again = chunks.findIndex(({ type }, index) => type === 'start' && index > at);
    // A stream that has nothing to say only finishes.
    if (at === -1) return chunks.find(({ type }) => !ENDS.has(type));
    return at === 0 ? chunks[again] : chunks[0];
  },
  'a delta or an end of a text or a reasoning comes only after its start with that id': ({ chunks }) =>
    wrongSpoken(chunks, 'unknown'),
  'the id of a text or a reasoning comes again only after its end': ({ chunks }) => wrongSpoken(chunks, 'again'),
  'a text or a reasoning ends before its step does': ({ chunks }) => wrongSpoken(chunks, 'unfinished'),
  'the arguments of a call come only after its tool-input-start': ({ chunks, knownCalls }) => {
    const begun = new Set(knownCalls);
    return chunks.find((chunk) => {
      if (chunk.type === 'tool-input-start') begun.add(chunk.toolCallId);
      return (
        (chunk.type === 'tool-input-delta' || chunk.type === 'tool-input-available') && !begun.has(chunk.toolCallId)
      );
    });
  },
  'a call begins once, unless its step is taken back': ({ chunks, knownCalls }) => {
    const begun = new Set(knownCalls);
    let inStep = new Set<string>();
    return chunks.find((chunk) => {
      if (chunk.type === 'start-step') inStep = new Set();
      if (chunk.type === 'reset-step') for (const call of inStep) begun.delete(call);
      if (chunk.type !== 'tool-input-start') return false;
      const isAgain = begun.has(chunk.toolCallId);
      begun.add(chunk.toolCallId);
      inStep.add(chunk.toolCallId);
      return isAgain;
    });
  },
  'results and approvals are only of calls whose arguments the message has': ({ chunks, knownCalls }) => {
    const known = new Set(knownCalls);
    return chunks.find((chunk) => {
      if (chunk.type === 'tool-input-available') known.add(chunk.toolCallId);
      return OF_CALLS.has(chunk.type) && !known.has((chunk as { toolCallId: string }).toolCallId);
    });
  },
  'an approval is answered only after it was asked': ({ chunks, knownApprovals }) => {
    const asked = new Set(knownApprovals);
    return chunks.find((chunk) => {
      if (chunk.type === 'tool-approval-request') asked.add(chunk.approvalId);
      return chunk.type === 'tool-approval-response' && !asked.has(chunk.approvalId);
    });
  },
  'a call has one result': ({ chunks }) => {
    let ended = new Set<string>();
    return chunks.find((chunk) => {
      if (chunk.type === 'reset-step') ended = new Set();
      if (!RESULTS.has(chunk.type) || ('preliminary' in chunk && chunk.preliminary === true)) return false;
      const { toolCallId } = chunk as { toolCallId: string };
      const isAgain = ended.has(toolCallId);
      ended.add(toolCallId);
      return isAgain;
    });
  },
  'steps begin and end in turn, and words are taken back only in one': ({ chunks, knownCalls }) => {
    // A message that goes on may be in the middle of a step.
    let isOpen = knownCalls.size > 0;
    return chunks.find(({ type }) => {
      const isWrong = type === 'start-step' ? isOpen && knownCalls.size === 0 : ONLY_IN_STEPS.has(type) && !isOpen;
      if (type === 'start-step') isOpen = true;
      if (type === 'finish-step') isOpen = false;
      return isWrong;
    });
  },
  'a stream ends with finish, abort or error, and only an error comes behind': ({ chunks }) => {
    const end = chunks.findIndex(({ type }) => ENDS.has(type));
    if (end === -1) return chunks.at(-1) ?? { type: 'finish' };
    return chunks.find(({ type }, index) => index > end && type !== 'error');
  },
};

/** @returns the rules that are broken, each with the chunk that breaks it. */
export function brokenRules(stream: SentStream): readonly string[] {
  return Object.entries(ORDER_RULES).flatMap(([rule, check]) => {
    const wrong = check(stream);
    return wrong === undefined ? [] : [`${rule}: ${JSON.stringify(wrong)}`];
  });
}

const ENDS: ReadonlySet<string> = new Set(['finish', 'abort', 'error']);
const RESULTS: ReadonlySet<string> = new Set(['tool-output-available', 'tool-output-error', 'tool-output-denied']);
const OF_CALLS: ReadonlySet<string> = new Set([...RESULTS, 'tool-approval-request']);
const ONLY_IN_STEPS: ReadonlySet<string> = new Set(['finish-step', 'reset-step', 'text-start', 'reasoning-start']);

function wrongSpoken(chunks: readonly Chunk[], what: 'unknown' | 'again' | 'unfinished'): Chunk | undefined {
  const open = new Set<string>();
  return chunks.find((chunk) => {
    if (chunk.type === 'reset-step') open.clear();
    if (chunk.type === 'finish-step') return what === 'unfinished' && open.size > 0;
    const [, kind, part] = /^(text|reasoning)-(start|delta|end)$/.exec(chunk.type) ?? [];
    if (part === undefined) return false;
    const key = `${kind} ${(chunk as { id: string }).id}`;
    const isOpen = open.has(key);
    if (part === 'start') open.add(key);
    if (part === 'end') open.delete(key);
    return part === 'start' ? what === 'again' && isOpen : what === 'unknown' && !isOpen;
  });
}

/** What the client has in its messages when it sends this request. */
export function knownTo(
  body: string | undefined,
): Pick<SentStream, 'knownCalls' | 'knownApprovals'> & { readonly message?: UIMessage } {
  const { messages = [], trigger } = JSON.parse(body ?? '{}') as { messages?: UIMessage[]; trigger?: string };
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || trigger === 'regenerate-message')
    return { knownCalls: new Set(), knownApprovals: new Set() };
  const calls = last.parts.filter((part) => part.type === 'dynamic-tool');
  return {
    knownCalls: new Set(calls.map(({ toolCallId }) => toolCallId)),
    knownApprovals: new Set(calls.flatMap(({ approval }) => (approval === undefined ? [] : [approval.id]))),
    message: last,
  };
}

/** A `fetch` that holds every stream that comes through it against the rules and the client. `broken` fills with what was wrong. */
export function checkedFetch(ask: typeof fetch): {
  readonly fetch: typeof fetch;
  readonly broken: string[];
  settled(): Promise<void>;
} {
  const broken: string[] = [];
  const checks: Promise<void>[] = [];
  const check = async (copy: Response, body: string | undefined): Promise<void> => {
    const sent = await copy.text().catch(() => undefined);
    // The client has left.
    if (sent === undefined || !sent.endsWith('data: [DONE]\n\n')) return;
    const chunks = await chunksIn(sent);
    const { message, ...known } = knownTo(body);
    const wrong = brokenRules({ chunks, ...known });
    if (wrong.length > 0) broken.push(...wrong, `in ${JSON.stringify(chunks)} for ${body}`);
    broken.push(...(await clientErrors(chunks, message)).map(String));
  };
  return {
    broken,
    settled: async () => void (await Promise.all(checks)),
    fetch: async (url, init) => {
      const answer = await ask(url, init);
      if (answer.headers.get('content-type')?.startsWith('text/event-stream') !== true) return answer;
      const copy = answer.clone();
      const body = typeof init?.body === 'string' ? init.body : undefined;
      checks.push(check(copy, body).catch((error: unknown) => void broken.push(String(error))));
      return answer;
    },
  };
}
