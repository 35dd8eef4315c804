import type { LanguageModelV4Message } from '@ai-sdk/provider';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CountedRequest, estimateTokens, TokenCounter } from '#model';

const user = (text: string): LanguageModelV4Message => ({ role: 'user', content: [{ type: 'text', text }] });
const png = { type: 'data' as const, data: new Uint8Array(1_000_000) };

describe('the estimate of a request', () => {
  it('CP-10 MM-20 is characters / 4 + 1 a text, and 4 more a message', () => {
    expect(estimateTokens({ prompt: [] })).toBe(0);
    expect(estimateTokens({ prompt: [user('')] })).toBe(5);
    expect(estimateTokens({ prompt: [user('x'.repeat(4003))] })).toBe(1005);
  });

  it('MM-20 counts 256 for what is no text', () => {
    const file = { type: 'file' as const, mediaType: 'image/png', data: png };
    expect(estimateTokens({ prompt: [{ role: 'user', content: [file, file] }] })).toBe(4 + 2 * 256);
    const note = {
      type: 'file' as const,
      mediaType: 'text/plain',
      data: { type: 'text' as const, text: 'x'.repeat(400) },
    };
    expect(estimateTokens({ prompt: [{ role: 'user', content: [note] }] })).toBe(4 + 101);
  });

  it('CP-16 W43 counts what is sent: system prompt, calls, results as they stand there, tools and the schema of the answer', () => {
    const stub = { artifact: 'sha256-1', bytes: 1_000_000 };
    const tool = { type: 'function' as const, name: 'look', inputSchema: { type: 'object' as const } };
    const schema = { type: 'object' as const };
    const json = (value: unknown): number => Math.floor(JSON.stringify(value).length / 4) + 1;
    const prompt: LanguageModelV4Message[] = [
      { role: 'system', content: 'x'.repeat(400) },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'x'.repeat(40) },
          { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { at: 'fjord' } },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c', toolName: 'look', output: { type: 'json', value: stub } },
          {
            type: 'tool-result',
            toolCallId: 'd',
            toolName: 'look',
            output: {
              type: 'content',
              value: [
                { type: 'text', text: 'xxxx' },
                { type: 'file', mediaType: 'image/png', data: png },
              ],
            },
          },
          { type: 'tool-result', toolCallId: 'e', toolName: 'look', output: { type: 'error-text', value: 'xxxx' } },
        ],
      },
    ];
    const messages = 4 + 101 + (4 + 11 + 2 + json({ at: 'fjord' })) + (4 + json(stub) + 2 + 256 + 2);
    expect(estimateTokens({ prompt })).toBe(messages);
    const whole = estimateTokens({ prompt, tools: [tool], responseFormat: { type: 'json', schema } });
    expect(whole).toBe(messages + json(tool) + json(schema));
  });

  it("W43 goes on from the provider's own count", () => {
    const tool = (name: string) => ({ type: 'function' as const, name, inputSchema: { type: 'object' as const } });
    const prompt = [user('x'.repeat(9999)), user('x'.repeat(400)), user('x'.repeat(40))];
    const tools = [tool('a'), tool('b')];
    const before = { inputTokens: 5000, messages: 1 };
    expect(estimateTokens({ prompt, tools }, before)).toBe(5000 + 105 + 15);
    const found = estimateTokens({ prompt: [], tools: [tool('b')] });
    expect(estimateTokens({ prompt, tools }, { ...before, tools: 1 })).toBe(5000 + 105 + 15 + found);
    expect(estimateTokens({ prompt }, { inputTokens: 5000, messages: 3 })).toBe(5000);
  });
});

describe('a counter of a growing request', () => {
  const change = fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('add' as const), text: fc.string({ maxLength: 40 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remind' as const), text: fc.string({ maxLength: 40 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('compact' as const), text: fc.string({ maxLength: 40 }) }) },
  );

  it('says the same as a new count, through reminders that come and go, compactions and found tools', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const counter = new TokenCounter();
        let kept: LanguageModelV4Message[] = [{ role: 'system', content: 'you are' }];
        let tools: NonNullable<CountedRequest['tools']> = [];
        for (const { kind, text } of changes) {
          if (kind === 'add') kept = [...kept, user(text)];
          if (kind === 'compact') {
            kept = [...kept.slice(0, 1), user(text), ...kept.slice(-2)];
            tools = [...tools, { type: 'function', name: `t${text}`, inputSchema: {} }];
          }
          const request = { prompt: kind === 'remind' ? [...kept, user(text)] : kept, tools };
          expect(counter.estimate(request)).toBe(estimateTokens(request));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('walks each message once', () => {
    let reads = 0;
    const message = (): LanguageModelV4Message => ({
      role: 'user',
      get content() {
        reads += 1;
        return [{ type: 'text' as const, text: 'xxxx' }];
      },
    });
    const counter = new TokenCounter();
    const prompt: LanguageModelV4Message[] = [];
    for (let step = 0; step < 200; step += 1) {
      prompt.push(message(), message());
      counter.estimate({ prompt: [...prompt] });
    }
    expect(reads).toBe(400);
  });
});
