/** OpenAI's Responses, and those who follow them: https://platform.openai.com/docs/api-reference/responses and …/responses-streaming */
import { createAzure } from '@ai-sdk/azure';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { createXai } from '@ai-sdk/xai';
import type { Json, JsonObject } from '#core';
import { COUNTS, events, halves, type Provider, type Said, type Saying } from './saying.ts';

const head = { id: 'resp_1', object: 'response', created_at: 1_700_000_000, model: 'm' };
const usage = {
  input_tokens: COUNTS.input,
  input_tokens_details: { cached_tokens: COUNTS.cached },
  output_tokens: COUNTS.output,
  output_tokens_details: { reasoning_tokens: COUNTS.thought },
  total_tokens: COUNTS.input + COUNTS.output,
};

const INCOMPLETE = { length: 'max_output_tokens', refused: 'content_filter' } as const;

function ended({ said, stop }: Saying): JsonObject {
  return {
    ...head,
    status: stop in INCOMPLETE ? 'incomplete' : 'completed',
    incomplete_details: stop in INCOMPLETE ? { reason: INCOMPLETE[stop as keyof typeof INCOMPLETE] } : null,
    error: null,
    output: said.map((part, index) => item(part, index)),
    usage,
  };
}

function item(part: Said, index: number): JsonObject {
  if ('text' in part) {
    return {
      type: 'message',
      id: `msg_${index}`,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: part.text, annotations: [], logprobs: [] }],
    };
  }
  if ('thought' in part) {
    return {
      type: 'reasoning',
      id: `rs_${index}`,
      status: 'completed',
      summary: part.thought === '' ? [] : [{ type: 'summary_text', text: part.thought }],
      ...(part.sealed === undefined ? {} : { encrypted_content: part.sealed }),
    };
  }
  if ('search' in part) throw new Error('Searches of responses are tried elsewhere.');
  return {
    type: 'function_call',
    id: `fc_${index}`,
    call_id: part.call,
    name: 'weather',
    arguments: part.args,
    status: 'completed',
  };
}

function frames(saying: Saying): Uint8Array[] {
  const end = ended(saying);
  const type = `response.${String(end['status'])}`;
  const data = [
    { type: 'response.created', response: { ...head, status: 'in_progress', output: [] } },
    { type: 'response.in_progress', response: { ...head, status: 'in_progress', output: [] } },
    ...saying.said.flatMap(itemEvents),
    { type, response: end },
  ];
  return events(
    data.map((event, sequence_number) => ({ ...event, sequence_number })),
    { named: true },
  );
}

function itemEvents(part: Said, output_index: number): JsonObject[] {
  const whole = item(part, output_index);
  const at = { item_id: whole['id'] as string, output_index };
  const begun = { ...whole, status: 'in_progress' };
  const end = { type: 'response.output_item.done', output_index, item: whole };
  const begin = (more: JsonObject): JsonObject => ({
    type: 'response.output_item.added',
    output_index,
    item: { ...begun, ...more },
  });
  if ('text' in part) {
    const where = { ...at, content_index: 0 };
    const [content] = whole['content'] as readonly Json[];
    return [
      begin({ content: [] }),
      {
        type: 'response.content_part.added',
        ...where,
        part: { type: 'output_text', text: '', annotations: [], logprobs: [] },
      },
      ...halves(part.text).map((delta) => ({ type: 'response.output_text.delta', ...where, delta, logprobs: [] })),
      { type: 'response.output_text.done', ...where, text: part.text, logprobs: [] },
      { type: 'response.content_part.done', ...where, part: content as Json },
      end,
    ];
  }
  if ('thought' in part) {
    const where = { ...at, summary_index: 0 };
    const summary = (text: string) => ({ type: 'summary_text', text });
    const said: JsonObject[] =
      part.thought === ''
        ? []
        : [
            { type: 'response.reasoning_summary_part.added', ...where, part: summary('') },
            ...halves(part.thought).map((delta) => ({
              type: 'response.reasoning_summary_text.delta',
              ...where,
              delta,
            })),
            { type: 'response.reasoning_summary_text.done', ...where, text: part.thought },
            { type: 'response.reasoning_summary_part.done', ...where, part: summary(part.thought) },
          ];
    return [begin({ summary: [] }), ...said, end];
  }
  if ('search' in part) throw new Error('Searches of responses are tried elsewhere.');
  return [
    begin({ arguments: '' }),
    ...halves(part.args).map((delta) => ({ type: 'response.function_call_arguments.delta', ...at, delta })),
    { type: 'response.function_call_arguments.done', ...at, name: 'weather', arguments: part.args },
    end,
  ];
}

const protocol = {
  places: ['calls', 'thought', 'sealed', 'between'],
  noArgs: ['{}', ''],
  refusal: { finish: 'content_filter' },
  whole: ended,
  frames,
  mime: 'text/event-stream',
  failure: events(
    [
      {
        type: 'error',
        sequence_number: 90,
        error: { type: 'server_error', code: 'server_error', message: 'The server had an error.', param: null },
      },
    ],
    { named: true },
  )[0] as Uint8Array,
  tooLong: {
    status: 400,
    json: {
      error: {
        message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
        type: 'invalid_request_error',
        param: 'input',
        code: 'context_length_exceeded',
      },
    },
  },
} as const satisfies Partial<Provider>;

const apiKey = 'k';

export const responses: readonly Provider[] = [
  { name: 'openai, responses', model: (at) => createOpenAI({ apiKey, ...at }).responses('gpt-5.2'), ...protocol },
  { name: 'azure, responses', model: (at) => createAzure({ apiKey, ...at }).responses('gpt-5.2'), ...protocol },
  {
    name: 'xai, responses',
    model: (at) => createXai({ apiKey, ...at }).responses('grok-4-fast-reasoning'),
    ...protocol,
    tooLong: {
      status: 400,
      json: {
        code: 'Client specified an invalid argument',
        error: "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
      },
    },
  },
  {
    name: 'open-responses',
    model: ({ baseURL, fetch }) =>
      createOpenResponses({ name: 'local', apiKey, url: `${baseURL}/responses`, fetch })('gpt-oss-20b'),
    ...protocol,
  },
];
