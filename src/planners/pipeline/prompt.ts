/** The first two stages: what is looked up, and the prompt that a template makes of it. */
import { defined, PilotageError, type Remark, type RunView } from '#core';
import type { Prompt } from './making.ts';
import type { GoalProgress } from './phase.ts';
import type { PlanForm } from './request.ts';
import { retrieveFor } from './retrieve.ts';
import type { Setup } from './setup.ts';
import { soFarText } from './so-far.ts';
import type { PromptTemplate } from './template.ts';
import { planVariables } from './template-variables.ts';

export interface Prompted {
  readonly prompt: Prompt;
  readonly remarks: readonly Remark[];
}

const RETRIEVER_TOKENS = 2_000;
const RETRIEVER_TIMEOUT_MS = 5_000;

/** @throws the signal's reason; PilotageError of the template, or `memory_block_unserializable`. */
export async function promptFor(
  setup: Setup,
  run: RunView,
  work: GoalProgress,
  signal: AbortSignal,
): Promise<Prompted> {
  const { options, numbers, prompts, clock, redact } = setup;
  const { retriever, retrieverTokens: tokens = RETRIEVER_TOKENS } = options;
  const timeoutMs = options.retrieverTimeoutMs ?? RETRIEVER_TIMEOUT_MS;
  const retrieved = await retrieveFor(retriever, run, { tokens, timeoutMs, clock, signal, redact });
  const template = templateOf(setup);
  const form = formOf(setup, template);
  const done = soFarText(run, work);
  const vars = planVariables({
    run,
    form,
    maxSteps: numbers.maxSteps,
    internal: options.internal !== undefined,
    ...defined({ retrieved: retrieved.text }),
    ...(done === '' ? {} : { done }),
  });
  const { text } = prompts.render(template, vars);
  return {
    prompt: { text, template: { id: template.id, version: template.version }, form },
    remarks: retrieved.remark === undefined ? [] : [retrieved.remark],
  };
}

/** @throws PilotageError `template_invalid` when the store has no such template. */
function templateOf({ options, prompts }: Pick<Setup, 'options' | 'prompts'>): PromptTemplate {
  const { template = options.stream === true ? 'plan-ndjson' : 'plan' } = options;
  const { id, version } = typeof template === 'string' ? { id: template, version: undefined } : template;
  const found = prompts.get(id, version);
  if (found !== null) return found;
  const which = version === undefined ? '' : ` with version ${version}`;
  throw new PilotageError(
    'template_invalid',
    `There is no prompt template ${JSON.stringify(id)}${which}. Put it first.`,
  );
}

/** A template of one's own says in its metadata, as `form`, when it asks for lines. */
function formOf({ options }: Setup, { id, metadata }: PromptTemplate): PlanForm {
  const isLines = options.stream === true || id === 'plan-ndjson' || metadata?.['form'] === 'ndjson';
  return isLines ? 'ndjson' : 'json';
}
