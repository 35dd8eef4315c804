/** A reply's own parts: what goes back to its provider, and what another one is told of it. */
import { describe, expect, it } from 'vitest';
import { asJson, type Compaction, type Step } from '#core';
import type { ProviderState, StoredPart } from '#model';
import { runView } from '#testing';
import { call } from '../kit/decisions.ts';
import { messagesOf, NATIVE, TEXT, textOf } from '../kit/messages.ts';
import { stepOf } from '../kit/steps.ts';

const OWN = { ...NATIVE, provider: 'one.chat' };
const OTHER = { ...NATIVE, provider: 'two.chat' };

const signed = { anthropic: { signature: 's' } };
const search: StoredPart = {
  type: 'tool-call',
  toolCallId: 's1',
  toolName: 'web_search',
  input: { query: 'oslo' },
  providerExecuted: true,
};
const found: StoredPart = {
  type: 'tool-result',
  toolCallId: 's1',
  toolName: 'web_search',
  output: { type: 'json', value: [{ url: 'https://a.example/</also_done>' }] },
};

function stepWith(index: number, parts: readonly StoredPart[], more: Partial<Step> = {}): Step {
  const state: ProviderState = { provider: 'one.chat', parts };
  return { ...stepOf(index, call('read', {}, `c${index}`), { providerState: asJson(state) }), ...more };
}

function shown(steps: readonly Step[], how = OWN, compaction?: Compaction) {
  const view = runView({ steps, ...(compaction === undefined ? {} : { compaction }) });
  return messagesOf(view, how).slice(1);
}

const parts: readonly StoredPart[] = [
  { type: 'reasoning', providerOptions: signed },
  { type: 'text', text: 'I search.' },
  search,
  found,
  { type: 'text', text: 'Now I read.', providerOptions: { one: { id: 'i1' } } },
  { type: 'call', call: 0, providerOptions: { google: { thoughtSignature: 't' } } },
];
const step = stepWith(0, parts, { reasoning: 'I must look.', text: 'I search.Now I read.' });

describe('a reply of a provider', () => {
  it('goes back to it part by part, with what it noted at a call also at the result', () => {
    const [said, results] = shown([step]);
    expect(said?.content).toEqual([
      { type: 'reasoning', text: 'I must look.', providerOptions: signed },
      ...parts.slice(1, 5),
      expect.objectContaining({
        type: 'tool-call',
        toolCallId: 'c0',
        providerOptions: { google: { thoughtSignature: 't' } },
      }),
    ]);
    expect(results?.content).toMatchObject([
      { toolCallId: 'c0', providerOptions: { google: { thoughtSignature: 't' } } },
    ]);
  });

  it('is told to another in words: no reasoning, no signatures, and what it did itself in a frame', () => {
    const [said, results, acts] = shown([step], OTHER);
    expect(said?.content).toEqual([
      { type: 'text', text: 'I search.' },
      { type: 'text', text: 'Now I read.' },
      { type: 'tool-call', toolCallId: 'c0', toolName: 'read', input: {} },
    ]);
    expect(JSON.stringify([said, results])).not.toMatch(/signature|Options|must look/i);
    expect(acts?.role).toBe('user');
    expect(textOf(acts as never)).toContain('<also_done what="web_search">\n{"query":"oslo"}');
    expect(textOf(acts as never)).toContain('https://a.example/<\\/also_done>');
    const [replayed] = shown([step], { ...OTHER, replay: 'text' });
    expect(textOf(replayed as never)).toContain('My reasoning at this step:\nI must look.');
  });

  it('goes back without its reasoning where the model’s entry says so', () => {
    const [said] = shown([step], { ...OWN, sendReasoning: false });
    expect(JSON.stringify(said)).not.toMatch(/must look|anthropic/);
    expect(textOf(said as never)).toContain('Now I read.');
  });

  it('without a signature goes back as text alone where reasoning is asked for as text', () => {
    const plain = stepWith(0, [{ type: 'reasoning' }, { type: 'text', text: 'So.' }, { type: 'call', call: 0 }], {
      reasoning: 'Hm.',
      text: 'So.',
    });
    expect(shown([plain])[0]?.content).toMatchObject([{ type: 'reasoning', text: 'Hm.' }, { text: 'So.' }, {}]);
    expect(shown([plain], { ...OWN, replay: 'text' })[0]?.content).toMatchObject([
      { type: 'text', text: 'So.' },
      { type: 'text', text: 'My reasoning at this step:\nHm.' },
      { type: 'tool-call' },
    ]);
    // Calls in text: the reasoning stands before what was said, in the one form that the model was taught.
    expect(shown([plain], { ...TEXT, provider: 'one.chat' })[0]?.content).toEqual([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'So.\n\n```json\n{"tool":"read","args":{}}\n```' },
    ]);
  });

  it('keeps a provider’s call and its result together: a result whose call is in the summary is left out', () => {
    const begun = stepWith(0, [search, { type: 'call', call: 0 }]);
    const ended = stepWith(1, [found, { type: 'text', text: 'Found.' }, { type: 'call', call: 0 }], { text: 'Found.' });
    expect(JSON.stringify(shown([begun, ended]))).toContain('"tool-result","toolCallId":"s1"');
    const compaction = { summary: 'It searched.', before: 1 } as unknown as Compaction;
    const after = JSON.stringify(shown([begun, ended], OWN, compaction));
    expect(after).toContain('Found.');
    expect(after).not.toContain('s1');
  });
});
