/** Runs of a ReAct planner through a real runtime, with what its models were sent. */
import type { LanguageModelV4CallOptions, LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { RunEvent, Step } from '#core';
import { type ReactOptions, react } from '#planners/react';
import type { Run, RunResult, StartOptions } from '#runtime';
import { type ReplyFunction, type ScriptedModel, type ScriptedReply, scriptedModel } from '#testing';
import { type Tool, tool } from '#tools';
import { collect } from '../kit/events.ts';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';
import { chatFault } from './well-formed.ts';

/** Takes `q`, and perhaps `limit`, and nothing else. */
export const input = {
  type: 'object',
  properties: { q: { type: 'string' }, limit: { type: 'integer' } },
  required: ['q'],
  additionalProperties: false,
} as const;

export const search: Tool = tool({
  name: 'search',
  description: 'Finds text in files.',
  effect: 'read',
  inputSchema: input,
  execute: ({ q }) => `found ${String(q)}`,
});
export const read: Tool = tool({
  name: 'read',
  description: 'Reads a file.',
  effect: 'read',
  inputSchema: input,
  execute: ({ q }) => `text of ${String(q)}`,
});

export interface PlayOptions extends Omit<WorldOptions, 'planner'> {
  readonly model: ReactOptions['model'];
  readonly react?: Omit<ReactOptions, 'model'>;
  readonly start?: Partial<StartOptions> & { readonly query?: string };
}

export interface Played extends World {
  readonly run: Run;
  readonly result: RunResult;
  readonly events: readonly RunEvent[];
  readonly steps: readonly Step[];
}

/** A runtime with a ReAct planner that waits for nothing: search and read are its tools unless others are given. */
export function reactWorld({ model, react: options, start: _, ...more }: PlayOptions): World {
  const planner = react({ model, clock: new ImpatientClock(), ...options });
  return world({ tools: [search, read], ...more, planner });
}

/** Starts a run and waits for its end. Nobody listens to it meanwhile, so that its replies come whole. */
export async function play(options: PlayOptions): Promise<Played> {
  const made = reactWorld(options);
  const run = await start(made, options.start);
  const result = await run.result();
  return { ...made, run, result, events: await collect(run), steps: (await run.state()).steps };
}

/** The same with a listener from the beginning on, so that its replies are streamed. */
export async function playStreamed(options: PlayOptions): Promise<Played> {
  const made = reactWorld(options);
  const run = await start(made, options.start);
  const events = await collect(run);
  return { ...made, run, result: await run.result(), events, steps: (await run.state()).steps };
}

/** What a reader of the events sees of each step's text, who takes back what was shown at each reset. */
export function shownTexts(events: readonly RunEvent[]): string[] {
  const texts: string[] = [];
  for (const event of events) {
    if (event.type === 'token.reset') texts[event.step] = '';
    if (event.type === 'token' && event.channel === 'text') texts[event.step] = (texts[event.step] ?? '') + event.text;
  }
  return texts;
}

/** A model that replies in this order, under an id of its own. */
export function named(
  modelId: string,
  script: readonly (ScriptedReply | ReplyFunction)[] | ReplyFunction,
): ScriptedModel {
  return scriptedModel(script, { modelId });
}

export type Replies = readonly (ScriptedReply | ReplyFunction)[];

export const good = (q = 'x'): ScriptedReply => ({ calls: [{ tool: 'search', args: { q } }] });
/** A call whose arguments lack `q`; each number makes another mistake. */
export const bad = (limit = 0): ScriptedReply => ({ calls: [{ tool: 'search', args: { limit } }] });

/** The messages after the system prompt. */
export function chat({ prompt }: Pick<LanguageModelV4CallOptions, 'prompt'>): readonly LanguageModelV4Message[] {
  return prompt.slice(1);
}

export function system({ prompt }: Pick<LanguageModelV4CallOptions, 'prompt'>): string {
  const [first] = prompt;
  return first?.role === 'system' ? first.content : '';
}

/** All text of a message: what is said, and what calls were answered with. */
export function wordsOf(message: LanguageModelV4Message | undefined): string {
  if (message === undefined) return '';
  if (typeof message.content === 'string') return message.content;
  return message.content
    .map((part) => {
      if (part.type === 'text' || part.type === 'reasoning') return part.text;
      if (part.type === 'tool-call') return `${part.toolName} ${JSON.stringify(part.input)}`;
      return part.type === 'tool-result' && 'value' in part.output ? String(part.output.value) : '';
    })
    .join('\n');
}

/** The last turn, when it is a reminder: its blocks. */
export function reminder({ prompt }: { readonly prompt: LanguageModelV4Prompt }): readonly string[] {
  const last = prompt.at(-1);
  const words = last?.role === 'user' ? wordsOf(last) : '';
  const blocks = /^<runtime_note>\n([\s\S]*)\n<\/runtime_note>$/.exec(words)?.[1]?.split('\n\n') ?? [];
  return blocks.every((block) => /^(reminder|warning|critical): /.test(block)) ? blocks : [];
}

/** The tier of each block of the reminder. */
export function tiers(request: { readonly prompt: LanguageModelV4Prompt }): string[] {
  return reminder(request).map((block) => block.slice(0, block.indexOf(':')));
}

/** What is wrong with any of the requests, as a chat. */
export function chatFaults(...models: readonly ScriptedModel[]): string[] {
  return models.flatMap(({ calls }) => calls.flatMap(({ prompt }) => chatFault(prompt) ?? []));
}
