/** The AI SDK has no common option for "one tool call a reply"; each provider has a word of its own. */
import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider';

/** Asks the provider for at most one call a reply. `undefined` for a provider whose word for it is not known. */
export function oneCallAtATime(model: LanguageModelV4): SharedV4ProviderOptions | undefined {
  const [provider] = model.provider.split('.');
  switch (provider) {
    case 'openai':
    case 'groq':
    case 'mistral':
      return { [provider]: { parallelToolCalls: false } };
    case 'azure':
      return { azure: { parallelToolCalls: false }, openai: { parallelToolCalls: false } };
    case 'anthropic':
      return { anthropic: { disableParallelToolUse: true } };
    case 'openaiCompatible':
      return { openaiCompatible: { parallel_tool_calls: false } };
    default:
      return undefined;
  }
}
