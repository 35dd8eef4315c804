/**
 * Results of tools that a provider defines and that run here. Most are told like any result. OpenAI's have forms of their own, in failure
 * too: it refuses a request in which a call of its shell is answered by a mere text.
 */
import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import { type Json, mapTexts, type Outcome, type ProviderTool, replacedAt, type TakenMedia } from '#core';
import { quoted } from './frame.ts';
import { type StepFiles, shownFile } from './result-files.ts';
import { toolResultOf } from './step-parts.ts';

type Output = LanguageModelV4ToolResultPart['output'];
type Told = Extract<Output, { type: 'text' | 'error-text' }>;

/** A result as its provider wants it. */
export interface FormedResult {
  readonly output: Output;
  /** The form has no place for the words of this result, which a model has to be told elsewhere. */
  readonly isWordless: boolean;
}

/** A black square, for a computer that has no screenshot to show: its form must have one. */
const NO_SCREENSHOT =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAADElEQVR42mNgGNwAAACgAAGO+7G0AAAAAElFTkSuQmCC';

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
  // A search that failed has found nothing.
  'openai.tool_search': () => ({ tools: [] }),
  'openai.computer': () => ({ output: { type: 'computer_screenshot', imageUrl: NO_SCREENSHOT } }),
};
const WORDLESS: readonly string[] = ['openai.tool_search', 'openai.computer'];

/** `undefined`: the tool has no form of its own, and is told like any. @param provider absent for a tool of the program's own. */
export function providerForm(
  outcome: Outcome | undefined,
  provider: ProviderTool | undefined,
  files: StepFiles,
): FormedResult | undefined {
  if (provider === undefined || !Object.hasOwn(FORMS, provider.id)) return undefined;
  const value = outcome?.kind === 'value' && outcome.artifact === undefined ? outcome : undefined;
  const shown = value?.media === undefined ? NO_FILES : shownIn(value.media, files);
  return inFormOf(provider, toolResultOf(outcome), shown && value?.value, shown);
}

const NO_FILES: ReadonlyMap<string, Json> = new Map();

/** The files of a value in their places; `undefined` when one of them is not shown. */
function shownIn(media: readonly TakenMedia[], files: StepFiles): ReadonlyMap<string, Json> | undefined {
  const found = new Map<string, Json>();
  for (const { at, artifact, prefix = '' } of media) {
    const shown = shownFile(artifact, files);
    if (shown === undefined) return undefined;
    found.set(at, prefix + Buffer.from(shown.bytes).toString('base64'));
  }
  return found;
}

/**
 * A result that is told in words, in the form of its tool.
 * @param whole the value, where all of it is told.
 * @param files what stands in the value at these places.
 */
export function inFormOf(
  provider: ProviderTool | undefined,
  told: Told,
  whole: Json | undefined,
  files: ReadonlyMap<string, Json> = NO_FILES,
): FormedResult {
  const form = provider === undefined ? undefined : FORMS[provider.id];
  if (provider === undefined || form === undefined) return { output: told, isWordless: false };
  if (whole !== undefined)
    return { output: { type: 'json', value: replacedAt(mapTexts(whole, quoted), files) }, isWordless: false };
  const value = form(told.value, told.type === 'error-text');
  return { output: { type: 'json', value }, isWordless: WORDLESS.includes(provider.id) };
}
