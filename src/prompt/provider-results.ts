/**
 * Results of tools that a provider defines and that run here. Most are told like any result. OpenAI's have forms of their own, in failure
 * too: it refuses a request in which a call of its shell is answered by a mere text.
 */
import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import { type Json, mapTexts, type Outcome, type ProviderTool } from '#core';
import { quoted } from './frame.ts';
import { toolResultOf } from './step-parts.ts';

type Output = LanguageModelV4ToolResultPart['output'];
type Told = Extract<Output, { type: 'text' | 'error-text' }>;

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
  if (provider === undefined || !Object.hasOwn(FORMS, provider.id)) return undefined;
  const whole = outcome?.kind === 'value' && outcome.artifact === undefined ? outcome.value : undefined;
  return inFormOf(provider, toolResultOf(outcome), whole);
}

/** A result that is told in words, in the form of its tool. @param whole the value, where all of it is told. */
export function inFormOf(provider: ProviderTool | undefined, told: Told, whole: Json | undefined): Output {
  const form = provider === undefined ? undefined : FORMS[provider.id];
  if (form === undefined) return told;
  const value = whole === undefined ? form(told.value, told.type === 'error-text') : mapTexts(whole, quoted);
  return { type: 'json', value };
}
