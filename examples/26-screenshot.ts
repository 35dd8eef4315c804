/**
 * A tool that gives a picture: the model sees it, the journal has its reference. A scripted server on loopback answers, and says what it was
 * shown. In a project of your own, import from 'pilotage' and its 'journal/memory' and 'openai-compatible'.
 */
import { z } from 'zod';
import { createRuntime, local, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { openaiServer } from '../src/testing/index.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const browser = { screenshot: async (_url: string): Promise<Uint8Array> => Buffer.from(PIXEL, 'base64') };

const screenshot = tool({
  name: 'screenshot',
  description: 'A picture of a page.',
  effect: 'read',
  inputSchema: z.object({ url: z.string() }),
  execute: async ({ url }, { saveArtifact }) => saveArtifact(await browser.screenshot(url), { mime: 'image/png' }),
  toModelOutput: ({ output: { artifactRef, mime } }) => ({
    type: 'content',
    value: [{ type: 'file', mediaType: mime, data: { type: 'reference', reference: { pilotage: artifactRef } } }],
  }),
});

const server = await openaiServer((request, index) =>
  index === 0
    ? { calls: [{ tool: 'screenshot', args: { url: 'https://example.test' } }] }
    : { text: `I was shown ${JSON.stringify(request).split('data:image/png').length - 1} picture.` },
);
const model = openaiCompatible({ baseUrl: server.url, model: 'any' });
const runtime = createRuntime({ planner: react({ model }), tools: [screenshot], journal: memoryJournal() });
const run = await runtime.start('What is on the page?', { identity: local('ana') });
const result = await run.result();
console.log(result.status === 'finished' ? result.answer : result);
console.log('in the journal:', JSON.stringify(await run.state()).includes(PIXEL) ? 'the picture' : 'its reference');
await runtime.close();
await server.close();
