/** Messages of one text. */
import type { LanguageModelV4Message } from '@ai-sdk/provider';

export function userTurn(text: string): LanguageModelV4Message {
  return { role: 'user', content: [{ type: 'text', text }] };
}

export function assistantTurn(text: string): LanguageModelV4Message {
  return { role: 'assistant', content: [{ type: 'text', text }] };
}
