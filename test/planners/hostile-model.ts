/** A model that does everything wrong that models have been seen to do, and some of it right; by a seed. */
import type { ReplyFunction, ScriptedCall, ScriptedReply } from '#testing';

type Random = () => number;

function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

const ARGUMENTS = [
  '{"q":"x"}',
  '{"q":"x","limit":3}',
  '{"q":"x","limit":"3"}',
  "{'q': 'x', 'limit': None}",
  '{"q": "x',
  '{"q": "x", "limit":',
  '{"limit": 3}',
  '{"q": 12345678901234567890}',
  '"x"',
  '[]',
  'null',
  '',
  '   ',
  'not json at all',
  '{"q":"x"} and so on',
  '{"__proto__": {"q": "x"}, "constructor": 1}',
  '{"q": "\\ud800"}',
  '{'.repeat(200),
  `{"q":${'['.repeat(150)}${']'.repeat(150)}}`,
];
const TOOLS = [
  'search',
  'search',
  'read',
  'pay',
  'Search',
  'functions.search',
  'nothing',
  '',
  '_finish',
  '_spawn_task',
  '_await_task',
  'a b\nc\u0000',
  '__proto__',
];
const IDS = ['', 'a', 'a', 'b', 'react.callid.1', 'call_1', '\n'];
const TEXTS = [
  '',
  ' \n ',
  'Plain words.',
  'I will search.\n```json\n{"tool": "search", "args": {"q": "x"}}\n```',
  '{"tool": "search", "args": {"q": "x"}}',
  '{"tool": "nothing", "args": {}}',
  '<tool_call>\n{"name": "search", "arguments": {"q": "x"}}',
  '<tool_call>{"name": "search", "argu',
  '[search(q="x"), read(q=\'y\')]',
  'Action: search\nAction Input: {"q": "x"}',
  '<think>hm',
  '</read_only_external_memory>',
  '```',
  '{'.repeat(300),
  // Calls of a tool with effects that nobody makes: no reading of any of them may carry it out.
  '[{"q":"never"}]',
  '{"q":"never","limit":1}',
  '{"tool": "pay", "args": {"q": "never"}}',
  'pay(q="never")',
  '[search(q="x"), pay(q="never")]',
  'Done: I called pay(q="never").',
  'As I said: {"tool": "pay", "args": {"q": "never"}}',
  'Action: pay\nAction Input: {"q": "never"}',
  '```json\n{"name": "pay", "arguments": {"q": "never"}}\n```',
  '```json\n{"tool": "pay", "args": {"q": "never"}}\n```\nThat is the call.',
  'For example:\n```json\n{"tool": "pay", "args": {"q": "never"}}\n```',
  '> ```json\n> {"tool": "pay", "args": {"q": "never"}}\n> ```',
  '<tool_call>{"name": "pay", "arguments": {"q": "never"}}',
  'I would write <tool_call>{"name": "pay", "arguments": {"q": "never"}}</tool_call>',
  '<think>pay(q="never")</think>Not now.',
  // One that is made, also by a model with native calls when it is the whole reply, and no more than once in text.
  '```json\n{"tool": "pay", "args": {"q": "once"}}\n```',
];

function call(random: Random): ScriptedCall {
  return { id: pick(random, IDS), tool: pick(random, TOOLS), input: pick(random, ARGUMENTS) };
}

/** An error that says that it may pass, as a provider's does. */
function passing(): Error {
  return Object.assign(new Error('overloaded'), { isRetryable: true, statusCode: 503 });
}

function hostileReply(random: Random): ScriptedReply {
  const text = pick(random, TEXTS);
  const usage = { inputTokens: 10, outputTokens: 2 };
  switch (Math.floor(random() * 12)) {
    case 0:
      return {};
    case 1:
      return {
        text,
        finish: pick(random, ['length', 'pause', 'content-filter', 'interrupted', 'error', 'other'] as const),
      };
    case 2:
      return { calls: [call(random)], finish: pick(random, ['length', 'interrupted', 'stop'] as const), usage };
    case 3:
      return { text, error: passing() };
    case 4:
      return { text, calls: [call(random), call(random), call(random)], usage };
    case 5:
      return { calls: [{ tool: '_finish', args: { answer: 'x' } }, ...(random() < 0.2 ? [] : [call(random)])] };
    case 6:
      return { calls: Array.from({ length: random() < 0.2 ? 60 : 8 }, () => call(random)) };
    case 7:
      return { text, reasoning: 'hm' };
    case 8:
      return { calls: [{ tool: 'search', args: { q: 'fine' } }], usage };
    case 9:
      return { text: pick(random, TEXTS) };
    default:
      return { text, calls: [call(random)], usage };
  }
}

export function hostileModel(random: Random): ReplyFunction {
  return () => hostileReply(random);
}
