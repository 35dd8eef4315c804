/** Structured output: a reply by a JSON schema, in the best mode that the model has: json_schema, json_object, or text. */
import type { JSONSchema7, LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider';
import {
  addUsage,
  defined,
  type JsonObject,
  type OutputMode,
  PilotageError,
  type Remark,
  type Usage,
  withUsage,
} from '#core';
import { type AskOptions, askModel } from './attempts.ts';
import type { ReadyModel } from './entry.ts';
import { httpStatusOf } from './failure.ts';
import { refusalError } from './refusal.ts';
import type { Reply } from './reply.ts';
import { leftAfter } from './reply-room.ts';
import { usageOfError } from './usage.ts';

export interface StructuredFormat {
  readonly responseFormat?: NonNullable<LanguageModelV4CallOptions['responseFormat']>;
  /** Text to be added as the last turn of the user. */
  readonly instruction?: string;
}

export interface StructuredOptions<T> extends Omit<AskOptions, 'models' | 'requestFor'> {
  readonly model: ReadyModel;
  readonly request: LanguageModelV4CallOptions;
  readonly schema: JsonObject;
  /** The name of the schema, for providers that want a name. Default `answer`. */
  readonly name?: string;
  /** Reads and validates the model's text. @throws an error that says what is wrong with the text. */
  readonly parse: (text: string) => T;
  /** The mode to begin with. Default: the model's best. For a second request, pass the `mode` that the first one returned. */
  readonly mode?: OutputMode;
}

export type Structured<T> = {
  /** The best mode that is known to work: begin with it next time. */
  readonly mode: OutputMode;
  /** A `model.output_downgraded` for each step down, and what the calls themselves remarked. */
  readonly remarks: readonly Remark[];
  /** Usage of all calls. */
  readonly usage?: Usage;
} & Read<T>;

/** `error` is what `parse` threw, of the last reply; of one that was refused it is a PilotageError `model_refused`. */
type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown; readonly reply: Reply };

/** How a request says what shape the answer has. */
export function structuredFormat(mode: OutputMode, schema: JsonObject, name: string): StructuredFormat {
  switch (mode) {
    case 'json_schema': {
      // Providers take letters, digits, _ and -, and at most 64 of them.
      const safe = name.replace(/[^\w-]/g, '_').slice(0, 64) || 'answer';
      return { responseFormat: { type: 'json', schema: schema as JSONSchema7, name: safe } };
    }
    case 'json_object':
      return { responseFormat: { type: 'json' }, instruction: instructionFor(schema) };
    case 'text':
      return { instruction: instructionFor(schema) };
    default:
      return mode satisfies never;
  }
}

/** The provider refuses the request, which may be for its response format. Only a lower mode can tell. */
export function isFormatRefusal(error: unknown): boolean {
  if (PilotageError.is(error, 'context_window_exceeded') || PilotageError.is(error, 'model_refused')) return false;
  const status = httpStatusOf(error);
  return status === 400 || status === 422;
}

/**
 * Asks one model, one mode lower each time the provider refuses the format or the text does not keep to the schema.
 * @throws as `askModel`; a refusal in text mode is thrown as it is.
 */
export async function askStructured<T>(options: StructuredOptions<T>): Promise<Structured<T>> {
  const {
    model,
    request,
    schema,
    name = 'answer',
    parse,
    mode: first = model.structuredOutput,
    left,
    ...how
  } = options;
  const remarks: Remark[] = [];
  let usage: Usage | undefined;
  let mode = first;
  const lower = (to: OutputMode): void => {
    remarks.push({ type: 'model.output_downgraded', model: model.name, from: mode, to });
    mode = to;
  };
  for (;;) {
    const below = oneLower(mode);
    const format = structuredFormat(mode, schema, name);
    let reply: Reply;
    try {
      const asked = await askModel({
        ...how,
        models: [model],
        left: left && leftAfter(left, usage),
        requestFor: () => formatted(request, format),
      });
      remarks.push(...asked.remarks);
      if (asked.usage !== undefined) usage = addUsage(usage, asked.usage);
      reply = asked.reply;
    } catch (error) {
      if (below === undefined || how.signal.aborted || !isFormatRefusal(error)) throw withUsage(error, usage);
      // A try before the refused one may have cost something.
      const used = usageOfError(error);
      if (used !== undefined) usage = addUsage(usage, used);
      lower(below);
      continue;
    }
    const read = readWith(parse, reply, model.name);
    if (below !== undefined) {
      const unread = !read.ok && !isCut(reply);
      // Where the provider did not pass the format on, an answer that fits is luck.
      if (unread || ignoredFormat(reply)) lower(below);
      if (unread) continue;
    }
    return usage === undefined ? { ...read, mode, remarks } : { ...read, mode, remarks, usage };
  }
}

function readWith<T>(parse: (text: string) => T, reply: Reply, model: string): Read<T> {
  const { refusal } = reply;
  // Words of refusal may look like an answer, where any text will do.
  if (refusal !== undefined) return { ok: false, error: refusalError(refusal, undefined, model, undefined), reply };
  try {
    return { ok: true, value: parse(reply.text) };
  } catch (error) {
    return { ok: false, error, reply };
  }
}

function ignoredFormat({ warnings = [] }: Reply): boolean {
  return warnings.some((warning) => warning.type === 'unsupported' && warning.feature === 'responseFormat');
}

function formatted(
  { prompt, ...settings }: LanguageModelV4CallOptions,
  { responseFormat, instruction }: StructuredFormat,
): LanguageModelV4CallOptions {
  return {
    ...settings,
    prompt: instruction === undefined ? prompt : [...prompt, userTurn(instruction)],
    ...defined({ responseFormat }),
  };
}

/** The next lower mode; `undefined` for the lowest. */
export function oneLower(mode: OutputMode): OutputMode | undefined {
  switch (mode) {
    case 'json_schema':
      return 'json_object';
    case 'json_object':
      return 'text';
    case 'text':
      return undefined;
    default:
      return mode satisfies never;
  }
}

/** Neither a longer request nor another format helps against a limit or a filter. */
function isCut({ finish }: Reply): boolean {
  return finish === 'length' || finish === 'content-filter';
}

function instructionFor(schema: JsonObject): string {
  return `Answer with one JSON value that keeps to the JSON schema below, and with nothing else.\n${JSON.stringify(schema)}`;
}

function userTurn(text: string): LanguageModelV4Message {
  return { role: 'user', content: [{ type: 'text', text }] };
}
