import { describe, expect, it } from 'vitest';
import { streamReply } from '#model';
import { recordingModel, scriptedModel } from '#testing';
import { generateReply } from '../kit/model.ts';

const request = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }] };

async function drain(model: Parameters<typeof streamReply>[0]): Promise<unknown> {
  const stream = streamReply(model, request);
  for (;;) {
    const next = await stream.next();
    if (next.done) return next.value;
  }
}

describe('scriptedModel', () => {
  it('gives its replies in order, keeps the requests, and fails beyond its script', async () => {
    const model = scriptedModel([{ text: 'a' }, (_, index) => ({ text: `reply ${index}` })]);
    expect(() => model.assertConsumed()).toThrow('2 of 2 replies');
    expect((await generateReply(model, request)).text).toBe('a');
    expect(() => model.assertConsumed()).toThrow('1 of 2 replies');
    expect(await drain(model)).toMatchObject({ text: 'reply 1' });
    expect(() => model.assertConsumed()).not.toThrow();
    await expect(generateReply(model, request)).rejects.toThrow('has 2 replies, and call 3 was made');
    expect(model.calls).toEqual([request, request, request]);
  });

  it('keeps no requests when it is told so', async () => {
    const model = scriptedModel(() => ({ text: 'a' }), { record: false, modelId: 'm' });
    expect((await generateReply(model, request)).modelId).toBe('m');
    expect(model.calls).toEqual([]);
  });

  it('throws the scripted error, and the reason of an aborted signal', async () => {
    const error = new Error('quota');
    await expect(generateReply(scriptedModel([{ error }]), request)).rejects.toBe(error);
    await expect(drain(scriptedModel([{ text: 'half', error }]))).rejects.toBe(error);
    const reason = new Error('stop');
    const aborted = { ...request, abortSignal: AbortSignal.abort(reason) };
    await expect(generateReply(scriptedModel([{ text: 'x' }]), aborted)).rejects.toBe(reason);
  });
});

describe('recordingModel', () => {
  it('writes down as JSON what makes a script with the same replies', async () => {
    const signed = { anthropic: { signature: 's' } };
    const replies = [
      {
        text: 'a',
        calls: [{ id: 'c', tool: 'search', input: '{"q": "x' }],
        usage: { inputTokens: 3, outputTokens: 1 },
      },
      { content: [{ type: 'reasoning' as const, text: 'r', providerMetadata: signed }], finish: 'length' as const },
    ];
    const recording = recordingModel(
      scriptedModel([...replies, { error: new Error('quota') }, { error: new Error('late') }]),
    );
    const live = [await generateReply(recording, request), await drain(recording)];
    await expect(generateReply(recording, { ...request, headers: { key: 'secret' } })).rejects.toThrow('quota');
    await expect(drain(recording)).rejects.toThrow('late');
    const stored = JSON.stringify(recording.calls.map((call) => call.reply));
    expect(JSON.stringify(recording.calls)).not.toContain('secret');
    expect(recording.calls.map((call) => call.request)).toEqual(new Array(recording.calls.length).fill(request));
    const replayed = scriptedModel(JSON.parse(stored));
    expect([await drain(replayed), await generateReply(replayed, request)]).toEqual(live);
    await expect(generateReply(replayed, request)).rejects.toBe('quota');
  });
});
