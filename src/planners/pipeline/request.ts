/** How a model is asked for a plan: as a call of the one tool `submit_plan` where it can, as JSON, or as lines of text. */
import type {
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
} from '@ai-sdk/provider';
import { defined } from '#core';
import { type ReadyModel, structuredFormat } from '#model';
import { PLAN_SCHEMA } from '#plans';
import { userTurn } from '#prompt';

/** The name of the function that a model calls with its plan. */
export const SUBMIT_PLAN = 'submit_plan';

/** `json`: one plan as a whole. `ndjson`: a line for each step, in text. */
export type PlanForm = 'json' | 'ndjson';

export interface PlanRequestParts {
  /** What the template gave. */
  readonly prompt: string;
  /** What comes after it: a former reply and what was wrong with it. */
  readonly turns?: readonly LanguageModelV4Message[];
  readonly model: ReadyModel;
  readonly form: PlanForm;
  /** Default 0. */
  readonly temperature?: number;
  readonly seed?: number;
  readonly maxOutputTokens?: number;
}

const SUBMIT_PLAN_TOOL: LanguageModelV4FunctionTool = {
  type: 'function',
  name: SUBMIT_PLAN,
  description: 'Hands in the whole plan. Call it once.',
  inputSchema: PLAN_SCHEMA as JSONSchema7,
};

/** The prompt says the schema itself, so that a request in text needs nothing beside it. */
export function planRequest(parts: PlanRequestParts): LanguageModelV4CallOptions {
  const { prompt, turns = [], model, form, temperature = 0, seed, maxOutputTokens } = parts;
  return {
    prompt: [userTurn(prompt), ...turns],
    temperature,
    ...defined({ seed, maxOutputTokens }),
    ...(form === 'json' ? answerAs(model) : {}),
  };
}

function answerAs({
  toolCalls,
  structuredOutput,
}: ReadyModel): Pick<LanguageModelV4CallOptions, 'tools' | 'toolChoice' | 'responseFormat'> {
  if (toolCalls === 'native') return { tools: [SUBMIT_PLAN_TOOL], toolChoice: { type: 'required' } };
  const { responseFormat } = structuredFormat(structuredOutput, PLAN_SCHEMA, 'plan');
  return responseFormat === undefined ? {} : { responseFormat };
}
