/** Names of tools that no provider's protocol carries. */
import { createOpenAI } from '@ai-sdk/openai';
import { expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import { tool } from '#tools';
import { collect, only } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { openJournal } from '../kit/sqlite.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';
import { wireServer } from './kit.ts';

const NAMES = ['mail.send', 'send mail', 'größe', `${'x'.repeat(69)}y`, `${'x'.repeat(69)}z`, '2fast'];

function said(message: JsonObject, reason: string): { readonly json: JsonObject } {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason }];
  return { json: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage } };
}

/** What a request declares. */
function declaredIn({ tools = [] }: { readonly tools?: readonly unknown[] }): string[] {
  return tools.map((each) => (each as { readonly function: { readonly name: string } }).function.name);
}

it('are sent as names that it carries, one for each, and mapped back; people see the tool’s own', async () => {
  const probe = await wireServer([said({ content: 'None.' }, 'stop')]);
  const calls: string[] = [];
  const tools = NAMES.map((name) => make(name, () => calls.push(name)));
  const openai = (url: string) => createOpenAI({ apiKey: 'k', baseURL: url }).chat('gpt-5.2');
  await (await start(world({ planner: react({ model: openai(probe.url) }), tools }))).result();
  const declared = declaredIn(probe.requests[0]?.body as never);
  await probe.close();
  const own = declared.filter((name) => /^[a-zA-Z_][\w-]{0,63}$/.test(name));
  expect(own).toHaveLength(declared.length);
  expect(new Set(declared).size).toBe(declared.length);
  const tool_calls = declared.map((name, index) => ({
    ...{ id: `c${index}`, type: 'function' },
    function: { name, arguments: '{}' },
  }));
  const server = await wireServer([
    said({ content: null, tool_calls }, 'tool_calls'),
    said({ content: 'Done.' }, 'stop'),
  ]);
  const run = await start(world({ planner: react({ model: openai(server.url) }), tools }));
  expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
  await server.close();
  expect(calls.toSorted()).toEqual(NAMES.toSorted());
  const events = await collect(run);
  expect(
    only(events, 'tool.completed')
      .map((each) => each.tool)
      .toSorted(),
  ).toEqual(NAMES.toSorted());
  // The history has the names that were declared.
  const messages = (server.requests[1]?.body as { readonly messages: readonly JsonObject[] }).messages;
  const told = messages.flatMap(({ tool_calls: made = [] }) => declaredIn({ tools: made as unknown[] }));
  expect(told).toEqual(declared);
});

it('are the same in the process that goes on', async () => {
  const path = temporaryFile();
  const tools = [make('mail.send', () => 'sent')];
  const stalled = scriptedModel((request, index) =>
    index === 0 ? { calls: [{ tool: String(request.tools?.[0]?.name) }] } : { stall: true },
  );
  const before = world({ planner: react({ model: stalled }), tools, journal: openJournal(path) });
  const run = await start(before);
  await until(() => stalled.calls.length === 2);
  await before.runtime.close();
  const model = scriptedModel([{ text: 'Done.' }]);
  const after = world({ planner: react({ model }), tools, journal: openJournal(path) });
  await after.runtime.run(run.id).resume();
  expect(await after.runtime.run(run.id).result()).toMatchObject({ answer: 'Done.' });
  expect(model.calls[0]?.tools).toEqual(stalled.calls[1]?.tools);
  expect(model.calls[0]?.prompt).toEqual(stalled.calls[1]?.prompt);
  await after.runtime.close();
});

it('that would meet another tool’s are refused when the agent is made', () => {
  const given = { description: 'Does it.', effect: 'read', inputSchema: {}, execute: () => null } as const;
  const wire = 'mail_send_b72927aec6';
  const made = (name: string) => () =>
    world({
      planner: () => ({ kind: 'finish', reason: 'goal' }),
      tools: [tool({ ...given, name: 'mail.send' }), tool({ ...given, name })],
    });
  expect(made('mail_send')).not.toThrow();
  expect(made(wire)).toThrow(
    expect.objectContaining({ code: 'tool_name_taken', message: expect.stringContaining(wire) }),
  );
});
