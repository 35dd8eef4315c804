/** A model, or a tool, that is away for a while: whoever looks at the run is told, and until when. */
import { describe, expect, it } from 'vitest';

import { memoryJournal } from '#journal';
import { agent } from '#pilotage';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { type ScriptedReply, scriptedModel, VirtualClock } from '#testing';
import { ToolFailure } from '#tools';
import { agUiServer, client } from '../kit/ag-ui.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { httpError } from '../kit/model.ts';
import { make } from '../kit/tools.ts';
import { Chat, historyOf, serveChats } from '../kit/ui-chat.ts';
import { advanceUntil } from '../kit/waiting.ts';

const busy: ScriptedReply = { error: httpError(503), errorAt: 'call' };

/** The model is away before the first step and before the second, and the tool in its first attempt. */
function scene() {
  const clock = new VirtualClock();
  const calls: ScriptedReply = { calls: [{ tool: 'limited' }] };
  const model = scriptedModel([busy, busy, calls, busy, { text: 'Served.' }]);
  let tries = 0;
  const limited = make(
    'limited',
    () => {
      tries += 1;
      if (tries === 1) throw new ToolFailure('busy', { retryAfterMs: 60_000 });
      return 'ok';
    },
    { effect: 'read', backoff: { baseMs: 0 } },
  );
  const planner = react({ model, retries: 0, clock: new ImpatientClock() });
  return { planner, tools: [limited], clock, random: () => 1, journal: memoryJournal() };
}

/** A message that is on its way, until the chat has all that comes of it. */
function sent(chat: Chat): { readonly isOver: boolean } {
  const said = { isOver: false };
  void chat.sendMessage({ text: 'go' }).then(() => {
    said.isOver = true;
  });
  return said;
}

const later = expect.any(Number);

describe('a chat', () => {
  it('says that its model or a tool is waited for, and when that is over', async () => {
    const { clock, ...options } = scene();
    const runtime = createRuntime({ clock, ...options });
    const url = await serveChats(runtime);
    const told: { readonly what: string; readonly status: string }[] = [];
    const chat = new Chat(url, {
      onData: ({ data }) => void told.push(structuredClone(data) as (typeof told)[number]),
    });
    const said = sent(chat);
    // Whoever comes meanwhile sees it as it is.
    await advanceUntil(clock, async () => {
      const part = (await historyOf(url)).at(-1)?.parts.at(-1);
      return part?.type === 'data-away' && (part.data as (typeof told)[number]).status === 'away';
    });
    await advanceUntil(clock, () => said.isOver);
    expect(told.map(({ what, status }) => `${what} ${status}`)).toEqual([
      ...['model away', 'model away', 'model over'],
      ...['limited away', 'limited over'],
      ...['model away', 'model over'],
    ]);
    expect(chat.said.at(-1)).toBe('assistant: Served.');
    expect((await historyOf(url)).at(-1)).toEqual(chat.messages.at(-1));
    await runtime.close();
  });

  it('says that it is over when the run waits for somebody in place of it', async () => {
    const model = scriptedModel([busy, { error: httpError(401), errorAt: 'call' }]);
    const clock = new VirtualClock();
    const planner = react({ model, retries: 0, clock: new ImpatientClock() });
    const runtime = createRuntime({ planner, clock, random: () => 1, journal: memoryJournal() });
    const url = await serveChats(runtime);
    const chat = new Chat(url);
    const said = sent(chat);
    await advanceUntil(clock, () => said.isOver);
    const parts = chat.messages.at(-1)?.parts ?? [];
    expect(parts).toMatchObject([
      { type: 'data-away', data: { status: 'over' } },
      { type: 'data-pause', data: { reason: 'model_unavailable', status: 'open' } },
    ]);
    await runtime.close();
  });
});

describe('AG-UI', () => {
  it('says that a model or a tool is waited for', async () => {
    const { planner, tools, clock, ...options } = scene();
    const { url } = await agUiServer({ clock, ...options, agents: [agent({ name: 'served', planner, tools })] });
    const page = client(url);
    page.addMessage({ id: 'm1', role: 'user', content: 'go' });
    let isOver = false;
    const run = page.runAgent().finally(() => {
      isOver = true;
    });
    await advanceUntil(clock, () => isOver);
    await run;
    const told = page.seen.filter(({ type }) => type === 'CUSTOM') as unknown as { value: { what: string } }[];
    expect(told.map(({ value }) => value)).toEqual(
      ['model', 'model', 'limited', 'model'].map((what) => ({ what, retryAt: later })),
    );
  });
});
