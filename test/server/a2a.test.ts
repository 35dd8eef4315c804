/** A2A 1.0 with its own client, unmodified, over both bindings. */
import { TaskState } from '@a2a-js/sdk';
import { describe, expect, it } from 'vitest';
import { answerOf, asked, BINDINGS, clientAt, data, Reader, said, sendFor, servedAgent, wordsOf } from './a2a-kit.ts';

describe.each(BINDINGS)('A2A over %s', (binding) => {
  it('carries a message out, waits for its end, and gives the same task again', async () => {
    const { url } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('say one two three'));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(answerOf(task)).toBe('one two three');
    const again = await client.getTask({ tenant: '', id: task.id, historyLength: undefined });
    expect(again).toEqual(task);
    expect(wordsOf(again.history[0]?.parts)).toBe('say one two three');
  });

  it('streams a task first, then words that add up to the answer, then the end', async () => {
    const { url } = await servedAgent();
    const client = await clientAt(url, binding);
    const reader = await new Reader().read(client.sendMessageStream(asked(said('slow 12')) as never));
    expect(reader.kinds[0]).toBe('task');
    expect(reader.kinds.filter((kind) => kind === 'artifactUpdate').length).toBeGreaterThan(5);
    expect(reader.kinds.at(-1)).toBe('statusUpdate');
    expect(reader.states.at(-1)).toBe(TaskState.TASK_STATE_COMPLETED);
    const task = await client.getTask({ tenant: '', id: reader.task?.id ?? '', historyLength: undefined });
    expect(reader.answer).toBe(answerOf(task));
  });

  it('says what it waits for, asks again for what is no answer, and takes words or data', async () => {
    const { url, effects } = await servedAgent();
    const client = await clientAt(url, binding);
    const task = await sendFor(client, said('refund A-17'));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(wordsOf(task.status?.message?.parts)).toMatch(/refund with .*A-17.*approve/s);
    const on = { taskId: task.id, contextId: task.contextId };
    const asksAgain = await sendFor(client, said('hm, is that much?', on));
    expect([asksAgain.status?.state, effects.count('refund')]).toEqual([TaskState.TASK_STATE_INPUT_REQUIRED, 0]);
    expect(wordsOf(asksAgain.status?.message?.parts)).toContain('no answer');
    const yes = said('approve', on);
    const done = await sendFor(client, yes);
    expect([done.status?.state, answerOf(done), effects.count('refund')]).toEqual([
      TaskState.TASK_STATE_COMPLETED,
      'A-17 is refunded.',
      1,
    ]);
    // The same answer again is the same, and runs nothing.
    expect((await sendFor(client, yes)).status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const denied = await sendFor(client, said('refund B-18'));
    const no = await sendFor(client, data({ approved: false, reason: 'too much' }, { taskId: denied.id }));
    expect([answerOf(no), effects.count('refund')]).toEqual(['B-18 is not refunded.', 1]);
  });
});
