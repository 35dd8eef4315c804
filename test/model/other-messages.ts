/** What servers say of other troubles, many of them of sizes and of tokens. */
import { type Sent, said, sent } from './overflow-messages.ts';

const PAGE =
  '<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body><center><h1>413 Request Entity Too Large</h1></center></body></html>';
/** Each is something else. */
export const OTHERS: readonly Sent[] = sent([
  ['nginx, a proxy', 413, PAGE],
  [
    'nginx with a status of its own',
    400,
    '<html><head><title>400 Request Header Or Cookie Too Large</title></head></html>',
  ],
  [
    'Express, body-parser',
    413,
    { message: 'request entity too large', type: 'entity.too.large', expected: 200_000, limit: 102_400 },
  ],
  [
    'Fastify',
    413,
    {
      statusCode: 413,
      code: 'FST_ERR_CTP_BODY_TOO_LARGE',
      error: 'Payload Too Large',
      message: 'Request body is too large',
    },
  ],
  ['Cloudflare, a proxy', 413, 'error code: 413'],
  ['a proxy without a body', 413, ''],
  ['AWS API Gateway', 413, { message: 'Request Too Long' }],
  ['Vercel', 413, { error: { code: 'FUNCTION_PAYLOAD_TOO_LARGE', message: 'Request Entity Too Large' } }],
  [
    'Groq, tokens per minute, continuedev/continue issue 10218',
    413,
    said(
      'Request too large for model `llama-3.3-70b-versatile` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
  ],
  [
    'OpenAI, tokens per minute, vanna-ai/vanna-flask issue 11',
    429,
    said(
      'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.',
    ),
  ],
  [
    'Bedrock, throttled',
    400,
    { name: 'ThrottlingException', message: 'Too many tokens, please wait before trying again.' },
  ],
  ['Bedrock, throttled per day', 429, { message: 'Too many tokens per day, please wait before trying again.' }],
  [
    'Anthropic, input tokens per minute',
    429,
    said('This request would exceed your organization’s rate limit of 40,000 input tokens per minute', {
      type: 'rate_limit_error',
    }),
  ],
  [
    'Anthropic, long context',
    429,
    said('Extra usage is required for long context requests.', { type: 'rate_limit_error' }),
  ],
  [
    'Google, quota',
    429,
    {
      error: {
        code: 429,
        message: 'You exceeded your current quota: input_token_count, limit: 1000000',
        status: 'RESOURCE_EXHAUSTED',
      },
    },
  ],
  ['Mistral, rate', 400, { message: 'Requests rate limit exceeded: too many tokens per minute', type: 'rate_limited' }],
  ['Cohere, a trial key', 400, { message: 'You are using a trial key, which is limited to 100000 tokens per minute' }],
  ['Fireworks, rate', 400, said('Rate limit: prompt tokens per second exceeded for this account')],
  [
    'OpenRouter, credits',
    402,
    said(
      'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1200.',
    ),
  ],
  ['Anthropic, credit', 400, said('Your credit balance is too low to access the Anthropic API.')],
  [
    'OpenAI, quota',
    429,
    said('You exceeded your current quota, please check your plan.', { code: 'insufficient_quota' }),
  ],
  ['a daily token limit', 400, said('daily token limit exceeded')],
  [
    'OpenAI, too many tools',
    400,
    said(
      "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
      { code: 'array_above_max_length' },
    ),
  ],
  [
    'OpenAI, the name of a tool',
    400,
    said(
      "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
      { code: 'string_above_max_length' },
    ),
  ],
  [
    'OpenAI, the description of a tool',
    400,
    said(
      "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 2000 instead.",
      { code: 'string_above_max_length' },
    ),
  ],
  [
    'OpenAI, the id of a call',
    400,
    said(
      "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 64 instead.",
    ),
  ],
  [
    'OpenAI, too many stop sequences',
    400,
    said(
      "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
    ),
  ],
  [
    'OpenAI, metadata',
    400,
    said("Invalid 'metadata': too many properties. Expected an object with at most 16 properties."),
  ],
  [
    'OpenAI, another name of a parameter',
    400,
    said("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", {
      code: 'unsupported_parameter',
      param: 'max_tokens',
    }),
  ],
  [
    'OpenAI, a value that is not taken',
    400,
    said("Unsupported value: 'temperature' does not support 0.2 with this model.", { code: 'unsupported_value' }),
  ],
  [
    'OpenAI, a schema',
    400,
    said("Invalid schema for function 'page': schema must be a JSON Schema of 'type: \"object\"'.", {
      code: 'invalid_function_parameters',
    }),
  ],
  [
    'OpenAI, calls without answers',
    400,
    said("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."),
  ],
  [
    'OpenAI, reasoning that is missing',
    400,
    said("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."),
  ],
  [
    'OpenAI, a smallest value',
    400,
    said("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.", {
      code: 'integer_below_min_value',
    }),
  ],
  ['OpenAI, a picture', 400, said('The image is too large: at most 20 MB are taken.', { code: 'image_too_large' })],
  ['OpenAI, a picture that is none', 400, said('You uploaded an unsupported image.', { code: 'invalid_image_format' })],
  [
    'OpenAI, its policy',
    400,
    said('Invalid prompt: your prompt was flagged as potentially violating our usage policy.', {
      code: 'invalid_prompt',
    }),
  ],
  [
    'Azure, its filter',
    400,
    said("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", {
      code: 'content_filter',
    }),
  ],
  [
    'Azure, no such deployment',
    404,
    said('The API deployment for this resource does not exist.', { code: 'DeploymentNotFound' }),
  ],
  [
    'Anthropic, a picture',
    400,
    said('messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes'),
  ],
  [
    'Anthropic, pictures',
    400,
    said(
      'messages.4.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels',
    ),
  ],
  [
    'Anthropic, pages of a PDF',
    400,
    said('messages.0.content.0.document.source.base64.data: A maximum of 100 PDF pages may be provided.'),
  ],
  ['Anthropic, max_tokens is missing', 400, said('max_tokens: Field required')],
  ['Anthropic, max_tokens of 0', 400, said('max_tokens: Input should be greater than or equal to 1')],
  [
    'Anthropic, its budget for thinking',
    400,
    said('`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation'),
  ],
  [
    'Anthropic, its budget is too small',
    400,
    said('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024'),
  ],
  ['Anthropic, too many marks', 400, said('A maximum of 4 blocks with cache_control may be provided. Found 5.')],
  ['Anthropic, an empty text', 400, said('messages: text content blocks must be non-empty')],
  ['Anthropic, a signature', 400, said('messages.1.content.0: Invalid `signature` in `thinking` block')],
  ['Anthropic, no such model', 404, said('model: claude-9', { type: 'not_found_error' })],
  ['Anthropic, overloaded', 529, said('Overloaded', { type: 'overloaded_error' })],
  [
    'Google, the schema is too deep',
    400,
    {
      error: {
        code: 400,
        message: 'The specified schema produces a constraint that has too many states for serving.',
        status: 'INVALID_ARGUMENT',
      },
    },
  ],
  [
    'Google, the payload',
    400,
    {
      error: {
        code: 400,
        message: 'Request payload size exceeds the limit: 20971520 bytes.',
        status: 'INVALID_ARGUMENT',
      },
    },
  ],
  [
    'Google, declarations',
    400,
    { error: { code: 400, message: 'At most 512 function declarations are allowed.', status: 'INVALID_ARGUMENT' } },
  ],
  [
    'Google, the key',
    400,
    {
      error: {
        code: 400,
        message: 'API key not valid. Please pass a valid API key.',
        details: [{ reason: 'API_KEY_INVALID' }],
      },
    },
  ],
  [
    'Bedrock, a request that is malformed',
    400,
    {
      message:
        'Malformed input request: #/texts/41: expected maxLength: 2048, actual: 2, please reformat your input and try again.',
    },
  ],
  [
    'Bedrock, on demand',
    400,
    { message: 'Invocation of model ID anthropic.claude-3 with on-demand throughput isn’t supported.' },
  ],
  [
    'Groq, a call that it cannot read',
    400,
    said('Failed to call a function. Please adjust your prompt.', { code: 'tool_use_failed' }),
  ],
  ['DeepSeek, the reasoning', 400, said('The reasoning_content in the thinking mode must be passed back to the API.')],
  [
    'vLLM, no tools',
    400,
    {
      message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      type: 'BadRequestError',
      code: 400,
    },
  ],
  [
    'vLLM, the words of a user in its input',
    422,
    {
      detail: [
        { type: 'value_error', msg: 'Input should be a valid list', input: 'prompt is too long: 5 tokens > 4 maximum' },
      ],
    },
  ],
  [
    'llama.cpp, a template',
    500,
    {
      error: {
        code: 500,
        message: 'Jinja exception: only user and assistant roles are supported',
        type: 'server_error',
      },
    },
  ],
  ['Ollama, no tools', 400, { error: 'registry.ollama.ai/library/gemma:2b does not support tools' }],
  [
    'LM Studio, no model',
    404,
    { error: { message: 'No models loaded. Please load a model.', code: 'model_not_found' } },
  ],
  [
    'Mistral, the order of roles',
    400,
    {
      message: 'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
      type: 'invalid_request_message_order',
      code: '3230',
    },
  ],
  ['xAI, a key', 400, { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***' }],
  ['a gateway that is away', 502, 'upstream: context length exceeded while reading response header'],
  ['a conflict', 409, said('context_length_exceeded')],
]);
