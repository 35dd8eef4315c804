/** Which models know a tool that a provider defines. Packages leave out what their server does not know, with a warning at most. */
import { PilotageError, type ToolSchema } from '#core';
import type { ReadyModel } from './entry.ts';

/** By the name before the dot of a tool's id, the providers, as their packages call them, whose models take such tools. */
const TAKEN_BY: Readonly<Record<string, RegExp>> = {
  // Also behind Vertex and Bedrock.
  anthropic: /anthropic|^amazon-bedrock$/i,
  openai: /^(?!xai\.).*\.responses$/,
  google: /^google|^vertex/,
  xai: /^xai\.responses$/,
  groq: /^groq\./,
  mistral: /^mistral\.conversation$/,
};

/** Packages of which it is known what their providers call themselves; others may stand for any provider. */
const KNOWN =
  /^(anthropic|openai|azure|google|vertex|amazon-bedrock|bedrock|bedrock-mantle|mistral|groq|deepseek|xai|cohere|alibaba|moonshotai|perplexity)(\.|$)|\.(chat|completion)$/;

/** @throws PilotageError `invalid_config` for a tool that one of the models cannot be offered, which says what to do. */
export function assertOffered(models: readonly ReadyModel[], tools: readonly ToolSchema[]): void {
  for (const { name, provider: kind } of tools) {
    if (kind === undefined) continue;
    for (const { name: called, model, toolCalls } of models) {
      const owner = `The tool ${name} (${kind.id}) cannot be offered to the model ${called}`;
      const instead = `Leave the tool out, give the agent only models that know it, or give a function tool that does the same`;
      if (toolCalls === 'text') {
        throw new PilotageError(
          'invalid_config',
          `${owner}, which calls tools in its text (toolCalls: 'text'). ${instead}.`,
        );
      }
      if (isTaken(kind.id, model.provider)) continue;
      const why =
        kind.id.startsWith('openai.') && /^(openai|azure)\./.test(model.provider) ? OVER_CHAT : `. ${instead}.`;
      throw new PilotageError(
        'invalid_config',
        `${owner}: its provider ${model.provider} does not know such tools${why}`,
      );
    }
  }
}

const OVER_CHAT = ' in this protocol. Take the model by the Responses protocol: openai.responses(id).';

function isTaken(id: string, provider: string): boolean {
  const [maker = ''] = id.split('.');
  // A gateway passes on what it is given.
  if (provider === 'gateway' || provider.startsWith('gateway.')) return true;
  const taken = TAKEN_BY[maker]?.test(provider) ?? provider.split('.')[0] === maker;
  return taken || !KNOWN.test(provider);
}
