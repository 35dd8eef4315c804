/** Pictures that tools give, and where requests have them. */
import { tool as sdkTool } from 'ai';
import type { Json, JsonObject } from '#core';
import type { UnnamedTool } from '#pilotage/tools';
import { type Tool, tool } from '#tools';
import { CITY } from './weather.ts';

/** The smallest of pictures. Each number has another one. */
export function png(number = 0): Uint8Array {
  const base = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  return number === 0 ? base : Buffer.concat([base, Buffer.from(`picture ${number}.`)]);
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

/** A tool of Pilotage that stores its picture itself: that of the number that it is given as a city. */
export function storedShot(): Tool {
  return tool({
    name: 'weather',
    description: 'A picture of the sky.',
    effect: 'read',
    inputSchema: CITY,
    execute: ({ city }, { saveArtifact }) =>
      saveArtifact(png(Number(city) || 0), { mime: 'image/png', fileName: 'sky.png' }),
    toModelOutput: ({ output }) => ({
      type: 'content',
      value: [
        { type: 'text', text: 'The sky as it is:' },
        {
          type: 'file',
          mediaType: output.mime,
          data: { type: 'reference', reference: { pilotage: output.artifactRef } },
        },
      ],
    }),
  });
}

/** A tool of the AI SDK whose value has the picture as base64. */
export function base64Shot(): UnnamedTool {
  return sdkTool({
    description: 'A picture of the sky.',
    inputSchema: { jsonSchema: CITY } as never,
    execute: async () => ({ sky: 'clear', picture: base64(png()) }),
    toModelOutput: ({ output }: { output: { sky: string; picture: string } }) => ({
      type: 'content' as const,
      value: [
        { type: 'text' as const, text: `It is ${output.sky}.` },
        { type: 'file' as const, mediaType: 'image/png', data: { type: 'data' as const, data: output.picture } },
      ],
    }),
  });
}

/** A tool as a client of MCP makes it (`createMCPClient` of the AI SDK): the result of the server, and its own words for a model. */
export function mcpTool(result: JsonObject): UnnamedTool & { readonly _meta: undefined } {
  return {
    description: 'A tool of a server.',
    inputSchema: CITY,
    effect: 'read',
    _meta: undefined,
    execute: async () => result,
    toModelOutput: ({ output }: { output: JsonObject }) => {
      const content = output['content'] as readonly JsonObject[];
      return {
        type: 'content',
        value: content.map((part) => {
          if (part['type'] === 'text') return { type: 'text', text: part['text'] };
          if (part['type'] === 'image') return { type: 'image-data', data: part['data'], mediaType: part['mimeType'] };
          return { type: 'text', text: JSON.stringify(part) };
        }),
      };
    },
  };
}

/** The paths at which a request has this text, with the numbers of lists as `#`. */
export function pathsOf(body: Json, text: string, path = ''): string[] {
  if (typeof body === 'string') return body.includes(text) ? [path] : [];
  if (typeof body !== 'object' || body === null) return [];
  if (Array.isArray(body)) return body.flatMap((item: Json) => pathsOf(item, text, `${path}/#`));
  return Object.entries(body).flatMap(([key, item]) => pathsOf(item, text, `${path}/${key}`));
}
