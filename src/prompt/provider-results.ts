/**
 * Results of tools that a provider defines and that run here. Most are told like any result. OpenAI's have forms of their own, in failure
 * too: it refuses a request in which a call of its shell is answered by a mere text.
 */
import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import { type Json, mapTexts, type Outcome, type ProviderTool } from '#core';
import { quoted } from './frame.ts';
import { toolResultOf } from './step-parts.ts';

type Output = LanguageModelV4ToolResultPart['output'];

/** What a text is in the form of a tool: an error, or the preview of a value that is too large. */
const FORMS: Readonly<Record<string, (text: string, failed: boolean) => Json>> = {
  'openai.shell': (text, failed) => ({
    output: [
      failed
        ? { stdout: '', stderr: text, outcome: { type: 'exit', exitCode: 1 } }
        : { stdout: text, stderr: '', outcome: { type: 'exit', exitCode: 0 } },
    ],
  }),
  'openai.local_shell': (output) => ({ output }),
  'openai.apply_patch': (output, failed) => ({ status: failed ? 'failed' : 'completed', output }),
  // A search that failed has found nothing: its form has no place for words.
  'openai.tool_search': () => ({ tools: [] }),
};

/** `undefined`: the tool has no form of its own, and is told like any. @param provider absent for a tool of the program's own. */
export function providerForm(outcome: Outcome | undefined, provider: ProviderTool | undefined): Output | undefined {
  const form = provider === undefined ? undefined : FORMS[provider.id];
  if (form === undefined) return undefined;
  const isWhole = outcome?.kind === 'value' && outcome.artifact === undefined;
  if (isWhole) return { type: 'json', value: mapTexts(outcome.value, quoted) };
  const { type, value } = toolResultOf(outcome);
  return { type: 'json', value: form(value, type === 'error-text') };
}
