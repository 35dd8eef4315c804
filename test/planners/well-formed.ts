/** What every provider asks of a chat: pairs of call and result, usable ids, nothing empty. */
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider';

/** What is wrong with a request, or `undefined`. */
export function chatFault(prompt: LanguageModelV4Prompt): string | undefined {
  const seen = new Set<string>();
  for (const [index, message] of prompt.entries()) {
    if (message.role === 'system') {
      if (index > 0) return `a second system message at ${index}`;
      continue;
    }
    if (message.content.length === 0) return `nothing at ${index}`;
    if (message.content.some((part) => part.type === 'text' && part.text === '')) return `empty text at ${index}`;
    const calls = message.content.flatMap((part) => (part.type === 'tool-call' ? [part] : []));
    const next = prompt[index + 1];
    const results =
      next?.role === 'tool' ? next.content.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : [])) : [];
    const ids = calls.map((part) => part.toolCallId);
    if (message.role === 'assistant' && JSON.stringify(ids) !== JSON.stringify(results)) return `unpaired at ${index}`;
    if (message.role === 'tool' && prompt[index - 1]?.role !== 'assistant') return `orphan at ${index}`;
    for (const { toolCallId, toolName, input } of calls) {
      if (toolCallId === '' || seen.has(toolCallId)) return `id ${toolCallId} at ${index}`;
      if (!/^[\w-]{1,64}$/.test(toolName)) return `name ${toolName} at ${index}`;
      if (typeof input !== 'object' || input === null || Array.isArray(input)) return `input at ${index}`;
      seen.add(toolCallId);
    }
  }
  const last = prompt.at(-1)?.role;
  return last === 'user' || last === 'tool' ? undefined : `it ends with ${last}`;
}

/**
 * A request as the next one goes on from it: a reminder is the last turn of one request alone. A provider's cache does not
 * see that it is gone: it comes after all that the two have in common.
 */
export function withoutReminder(request: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  const last = request.prompt.at(-1);
  const [part] = last?.role === 'user' ? last.content : [];
  if (part?.type !== 'text' || !/^<runtime_note>\n(reminder|warning|critical): /.test(part.text)) return request;
  return { ...request, prompt: request.prompt.slice(0, -1) };
}
