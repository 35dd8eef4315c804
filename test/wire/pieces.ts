/** Answers of providers as bytes that come in pieces, cut anywhere: in the middle of a line, of a letter, of a checksum. */
import type { Json, JsonObject } from '#core';
import type { WireRequest } from './kit.ts';
import type { Provider, Saying } from './replies/saying.ts';

export interface Answer {
  readonly status: number;
  readonly mime: string;
  readonly body: Uint8Array;
}

export type Cut = (body: Uint8Array) => readonly Uint8Array[];

export const whole: Cut = (body) => [body];

export const byByte: Cut = (body) => Array.from(body, (_, at) => body.subarray(at, at + 1));

/** At places that are the same for the same seed, on average each 24 bytes. */
export function anywhere(seed: number): Cut {
  return (body) => {
    const pieces: Uint8Array[] = [];
    let state = seed;
    for (let from = 0; from < body.length; ) {
      // Park and Miller's generator.
      state = (state * 48_271) % 2_147_483_647;
      const to = from + 1 + (state % 47);
      pieces.push(body.subarray(from, to));
      from = to;
    }
    return pieces;
  };
}

export function jsonAnswer(json: Json, status = 200): Answer {
  return { status, mime: 'application/json', body: new TextEncoder().encode(JSON.stringify(json)) };
}

export function answerOf(provider: Provider, saying: Saying, stream: boolean): Answer {
  if (!stream) return jsonAnswer(provider.whole(saying));
  return { status: 200, mime: provider.mime, body: Buffer.concat([...provider.frames(saying)]) };
}

export interface Wire {
  readonly fetch: typeof globalThis.fetch;
  readonly requests: readonly WireRequest[];
}

/** Each request gets the next answer, in pieces; the last one is for all that come after it. */
export function wire(answers: readonly Answer[], cut: Cut): Wire {
  const requests: WireRequest[] = [];
  return {
    requests,
    fetch: async (input, init) => {
      const { pathname } = new URL(input instanceof Request ? input.url : input);
      requests.push({ path: pathname, body: JSON.parse(String(init?.body)) as JsonObject });
      const { status, mime, body } = answers[Math.min(requests.length, answers.length) - 1] as Answer;
      const pieces = cut(body)[Symbol.iterator]();
      const stream = new ReadableStream<Uint8Array>({
        pull(controller) {
          const { done, value } = pieces.next();
          if (done === true) controller.close();
          else controller.enqueue(value.slice());
        },
      });
      return new Response(stream, { status, headers: { 'content-type': mime } });
    },
  };
}
