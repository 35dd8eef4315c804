/** What the messages to a model say. */
import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { RunView } from '#core';
import { systemPrompt, Transcript, type TranscriptOptions } from '#prompt';

export const NATIVE: TranscriptOptions = { mode: 'native', replay: 'never', takes: () => false };

export const TEXT: TranscriptOptions = { ...NATIVE, mode: 'text' };

/** The messages of a view, without the system prompt. */
export function messagesOf(view: RunView, options: TranscriptOptions = NATIVE): LanguageModelV4Message[] {
  return new Transcript(systemPrompt({ converse: false }, view, options.mode), view, options).upTo(view).slice(1);
}

export const user = (text: string): LanguageModelV4Message => ({ role: 'user', content: [{ type: 'text', text }] });

export const assistant = (text: string): LanguageModelV4Message => ({
  role: 'assistant',
  content: [{ type: 'text', text }],
});

/** The texts of messages; a file is its type, a call and a result are their tool. */
export function textOf({ content }: LanguageModelV4Message): string {
  if (typeof content === 'string') return content;
  return content
    .map((part) =>
      part.type === 'text' ? part.text : 'toolName' in part ? `${part.type} ${part.toolName}` : part.type,
    )
    .join('\n');
}

export function texts(prompt: LanguageModelV4Prompt, role: LanguageModelV4Message['role']): string[] {
  return prompt.flatMap((message) => {
    if (message.role !== role) return [];
    if (typeof message.content === 'string') return [message.content];
    return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  });
}

/** The results of the last tool message. */
export function lastResults(prompt: LanguageModelV4Prompt): unknown[] {
  const last = prompt.findLast((message) => message.role === 'tool');
  return (last?.content as { output: unknown }[] | undefined)?.map((part) => part.output) ?? [];
}
