/** What reads a text that comes in small pieces, with the value so far read after each piece. */
import { createRequire } from 'node:module';
import { parsePartialJson } from 'ai';
import { JsonStream } from '#parse';

export interface Reader {
  readonly name: string;
  /** Its part of a key of `--json`. */
  readonly key: string;
  /** @returns the value after the last piece. */
  readonly read: (pieces: readonly string[]) => Promise<unknown>;
}

type ReadText = (text: string) => unknown;

export const OURS: Reader = {
  name: 'pilotage JsonStream',
  key: 'pilotage',
  async read(pieces) {
    const stream = new JsonStream();
    let value: unknown;
    for (const piece of pieces) {
      stream.push(piece);
      value = stream.value();
    }
    stream.end();
    if (stream.state !== 'complete') throw new Error(`JsonStream is ${stream.state}.`);
    return value;
  },
};

export const ALL_PEERS = 4;

/** The parsers of others read all of the text so far again after each piece: that is how they are used. */
export function peers(): Reader[] {
  const found: Reader[] = [
    {
      name: 'ai parsePartialJson',
      key: 'ai',
      async read(pieces) {
        let text = '';
        let value: unknown;
        for (const piece of pieces) {
          text += piece;
          ({ value } = await parsePartialJson(text));
        }
        return value;
      },
    },
  ];
  const partialJson = peer<{ parse: ReadText }>('partial-json');
  if (partialJson) found.push(again('partial-json', 'partial_json', partialJson.parse));
  const repair = peer<{ jsonrepair: (text: string) => string }>('jsonrepair');
  if (repair) found.push(again('jsonrepair', 'jsonrepair', (text) => JSON.parse(repair.jsonrepair(text))));
  const langchain = peer<{ parsePartialJson: ReadText }>('@langchain/core/output_parsers');
  if (langchain) found.push(again('LangChain parsePartialJson', 'langchain', langchain.parsePartialJson));
  return found;
}

function again(name: string, key: string, readText: ReadText): Reader {
  return {
    name,
    key,
    async read(pieces) {
      let text = '';
      let value: unknown;
      for (const piece of pieces) {
        text += piece;
        try {
          value = readText(text);
        } catch {
          // Half an escape, for one: the value before it stays on the screen.
        }
      }
      return value;
    },
  };
}

const requirePeer = createRequire(new URL('peers/package.json', import.meta.url));

/** A package of `bench/peers`, if those are installed: `node bench/peers/run.mjs` does that. */
function peer<T>(name: string): T | undefined {
  try {
    return requirePeer(name) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
