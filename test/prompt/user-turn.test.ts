import { describe, expect, it } from 'vitest';
import type { LoadedInput } from '#core';
import { requestTurn, unreadableInputs, userWordsIn } from '#prompt';
import { type RunViewOptions, runView, toolView } from '#testing';

/** More than the 32 KiB from which results are stored: an attachment is not a result. */
const bytes = Buffer.alloc(40_000, '\x89PNG\r\n\x1a\n', 'latin1');
const png: LoadedInput = { artifactRef: 'art_p', mime: 'image/png', sizeBytes: bytes.length, fileName: 'a.png', bytes };
const pdf: LoadedInput = { artifactRef: 'art_d', mime: 'application/pdf', sizeBytes: 9, bytes: new Uint8Array(9) };

const takes =
  (...types: string[]) =>
  (mime: string) =>
    types.includes(mime);
const parts = (options: RunViewOptions, ...types: string[]) =>
  requestTurn(runView(options), { takes: takes(...types) }, userWordsIn('native'))?.content;
const text = (said: string) => ({ type: 'text', text: said });
const file = ({ mime, bytes: data, fileName }: LoadedInput) => ({
  ...{ type: 'file', mediaType: mime, data: { type: 'data', data } },
  ...(fileName === undefined ? {} : { filename: fileName }),
});

describe('the turn with the request', () => {
  it('RA-27, MM-01 is plain text without attachments; with neither query nor history a fixed text', () => {
    expect(parts({ query: 'pack for Oslo' })).toEqual([text('pack for Oslo')]);
    expect(parts({ query: '' })).toEqual([text('<runtime_note>\nNo request was supplied.\n</runtime_note>')]);
    const history = [{ role: 'assistant' as const, text: 'Go on?' }];
    expect(parts({ query: '', history })).toBeUndefined();
    expect(parts({ query: '', history: [{ role: 'user', text: '' }] })).toEqual([
      text('<runtime_note>\nNo request was supplied.\n</runtime_note>'),
    ]);
  });

  it('MM-01, MM-02, MM-06 has the text first, left out when empty, then each file that the model takes', () => {
    expect(parts({ inputs: [png, pdf] }, 'image/png', 'application/pdf')).toEqual([
      text('hello'),
      file(png),
      file(pdf),
    ]);
    expect(parts({ query: '', inputs: [png] }, 'image/png')).toEqual([file(png)]);
  });

  it('MM-02, MM-03, MM-06 what the model does not take is named by reference', () => {
    const [, image, document] = parts({ inputs: [png, pdf] }, 'application/pdf') ?? [];
    expect(image).toEqual(
      text(
        'An attachment of this request, by reference:\n<attachment>\n' +
          '{"artifact_ref":"art_p","mime":"image/png","size_bytes":40000,"file_name":"a.png"}\n</attachment>',
      ),
    );
    expect(document).toEqual(file(pdf));
    const [, blank] = parts({ inputs: [{ ...pdf, mime: ' ' }] }, 'application/pdf') ?? [];
    expect(blank).toMatchObject({ text: expect.stringContaining('"mime":"application/octet-stream"') });
  });

  it('MM-04, W109 the reference names the first tool that reads the type: that one exactly, or its family', () => {
    const reader = (name: string, ...mimeTypes: string[]) => ({
      name,
      mimeTypes,
      description: name,
      inputSchema: {},
      effect: 'read' as const,
      tags: [],
      loading: 'always' as const,
      examples: [],
    });
    const stubWith = (...tools: ReturnType<typeof reader>[]) => parts({ inputs: [pdf], tools: toolView(tools) })?.[1];
    const fetchedBy = (tool: string) => ({
      text: expect.stringContaining(`"fetch":{"tool":"${tool}","id":"art_d"}`),
    });
    expect(stubWith(reader('all', '*/*'), reader('pdf', 'application/pdf'))).toMatchObject(fetchedBy('pdf'));
    expect(stubWith(reader('family', 'text/plain', 'application/*'))).toMatchObject(fetchedBy('family'));
    expect(JSON.stringify(stubWith(reader('all', '*/*'), reader('text', 'text/*')))).not.toContain('fetch');
  });

  it('MM-22, W118 an attachment that could not be read is named as missing, and remarked', () => {
    const missing = (stub: string) =>
      text(`An attachment of this request could not be read, and is missing:\n<attachment>\n${stub}\n</attachment>`);
    const { bytes: _, ...lost } = png;
    const nameless: LoadedInput = { artifactRef: 'art_x', mime: 'image/png', sizeBytes: 1 };
    expect(parts({ inputs: [lost, nameless, pdf] }, 'image/png')?.slice(1, 3)).toEqual([
      missing('{"artifact_ref":"art_p","file_name":"a.png"}'),
      missing('{"artifact_ref":"art_x"}'),
    ]);
    expect(unreadableInputs({ inputs: [lost, pdf, nameless], history: [] })).toEqual([
      { type: 'input.unreadable', artifactRef: 'art_p', fileName: 'a.png' },
      { type: 'input.unreadable', artifactRef: 'art_x' },
    ]);
  });

  it('MM-21 a query of 40 KiB passes whole', () => {
    const query = 'wörd '.repeat(8192);
    expect(parts({ query })).toEqual([text(query)]);
  });
});
