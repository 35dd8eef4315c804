/** What servers say when a request does not fit their model's window, or asks for too long a reply. */
import type { Overflow } from '#core';

/** A message of a server: who sends it and where that is found, its status, the body, and what is read from it. */
export interface Sent {
  readonly source: string;
  readonly status: number | undefined;
  readonly body: unknown;
  readonly overflow?: Partial<Overflow>;
}
type Row = readonly [source: string, status: number | undefined, body: unknown, overflow?: Partial<Overflow>];

export const sent = (rows: readonly Row[]): readonly Sent[] =>
  rows.map(([source, status, body, overflow]) => ({
    source,
    status,
    body,
    ...(overflow === undefined ? {} : { overflow }),
  }));

export const said = (message: string, more: object = {}): object => ({
  error: { message, type: 'invalid_request_error', ...more },
});

export const TOO_LONG: readonly Sent[] = sent([
  [
    'Anthropic, docs: context windows',
    400,
    { type: 'error', ...said('prompt is too long: 213462 tokens > 200000 maximum') },
    { limitTokens: 200_000, sentTokens: 213_462 },
  ],
  [
    'Anthropic, docs: errors, 413',
    413,
    { type: 'error', error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } },
  ],
  [
    'Anthropic, anthropics/claude-code issue 228',
    400,
    said(
      'input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again',
    ),
    { limitTokens: 200_000, sentTokens: 199_759, wishTokens: 8_192 },
  ],
  [
    'OpenAI chat, docs: error codes',
    400,
    said(
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 8202 tokens. Please reduce the length of the messages.",
      { param: 'messages', code: 'context_length_exceeded' },
    ),
    { limitTokens: 8_192, sentTokens: 8_202 },
  ],
  [
    'OpenAI chat with functions, bytedance/deer-flow issue 310',
    400,
    said(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 202868 tokens (202767 in the messages, 101 in the functions). Please reduce the length of the messages or functions.",
    ),
    { limitTokens: 128_000 },
  ],
  [
    'OpenAI completions, langchain-ai/langchain issue 11001',
    400,
    said(
      "This model's maximum context length is 4097 tokens, however you requested 4226 tokens (3970 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.",
    ),
    { limitTokens: 4_097, sentTokens: 3_970, wishTokens: 256 },
  ],
  [
    'OpenAI responses, docs: error codes',
    400,
    said('Your input exceeds the context window of this model. Please adjust your input and try again.', {
      code: 'context_length_exceeded',
      param: 'input',
    }),
  ],
  [
    'OpenAI responses, an error event of a stream',
    undefined,
    {
      type: 'error',
      sequence_number: 2,
      error: {
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        message: 'Your input exceeds the context window of this model.',
      },
    },
  ],
  ['OpenAI, a code without words', 400, { error: { code: 'context_length_exceeded', message: '' } }],
  [
    'OpenAI, a single message, docs: error codes',
    400,
    said(
      "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a string with length 11000000 instead.",
      { code: 'string_above_max_length' },
    ),
  ],
  [
    'Azure, Azure/azure-sdk-for-net issues',
    400,
    said(
      "This model's maximum context length is 16384 tokens. However, you requested 17000 tokens (15800 in the messages, 1200 in the completion). Please reduce the length of the messages or completion.",
      { code: 'context_length_exceeded', param: 'messages' },
    ),
    { limitTokens: 16_384, sentTokens: 15_800, wishTokens: 1_200 },
  ],
  [
    'Azure responses, the code deep inside',
    400,
    { error: { code: 'BadRequest', message: 'Bad request', inner: 1, details: [{ code: 'context_length_exceeded' }] } },
  ],
  [
    'Google, google-gemini/gemini-cli issue 6678',
    400,
    {
      error: {
        code: 400,
        message: 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).',
        status: 'INVALID_ARGUMENT',
      },
    },
    { limitTokens: 1_048_576, sentTokens: 1_200_293 },
  ],
  [
    'Google without the count, google-gemini/gemini-cli issue 22609',
    400,
    { error: { code: 400, message: 'The input token count exceeds the maximum number of tokens allowed 1048576.' } },
    { limitTokens: 1_048_576 },
  ],
  [
    'Vertex, Google Cloud docs: token counts',
    400,
    {
      error: {
        code: 400,
        message:
          'Unable to submit request because the input token count is 32776 but model only supports up to 32768. Reduce the input token count and try again.',
      },
    },
    { limitTokens: 32_768, sentTokens: 32_776 },
  ],
  [
    'Vertex with Claude',
    400,
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 200049 tokens > 200000 maximum' },
    },
    { limitTokens: 200_000, sentTokens: 200_049 },
  ],
  ['Bedrock, aws-samples/bedrock-chat issue 95', 400, { message: 'Input is too long for requested model.' }],
  [
    'Bedrock, an exception of a stream',
    undefined,
    {
      name: 'ValidationException',
      message: 'The model returned the following errors: Input is too long for requested model.',
    },
  ],
  [
    'Bedrock with Claude, daisuke-awaji/moca issue 254',
    400,
    { message: 'The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum' },
    { limitTokens: 200_000 },
  ],
  [
    'Bedrock with Cohere and Titan',
    400,
    { message: 'Too many input tokens. Max input tokens: 8192, request input token count: 9417' },
    { limitTokens: 8_192 },
  ],
  [
    'Mistral, its API',
    400,
    {
      object: 'error',
      message: 'Prompt contains 40102 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_error',
      code: '3051',
    },
    { limitTokens: 32_768, sentTokens: 40_102 },
  ],
  [
    'Groq, docs: errors',
    400,
    said('Please reduce the length of the messages or completion.', {
      code: 'context_length_exceeded',
      param: 'messages',
    }),
  ],
  [
    'Cerebras, its API',
    400,
    {
      message: 'Please reduce the length of the messages or completion. Current length is 8193 while limit is 8192',
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    },
    { limitTokens: 8_192, sentTokens: 8_193 },
  ],
  [
    'xAI, its API',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    { limitTokens: 131_072, sentTokens: 537_812 },
  ],
  [
    'Cohere, docs: errors',
    400,
    {
      message:
        'too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs, or setting prompt_truncation=AUTO.',
    },
  ],
  [
    'Cohere, cohere-ai/sandbox-topically issue 4',
    400,
    {
      message:
        'too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a smaller max_tokens value.',
    },
    { limitTokens: 2_048, sentTokens: 6_354 },
  ],
  [
    'OpenRouter, refly-ai/refly issue 1177',
    400,
    {
      error: {
        code: 400,
        message:
          'This endpoint\'s maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.',
      },
    },
    { limitTokens: 32_768, sentTokens: 42_832 },
  ],
  [
    'OpenRouter, words of the provider behind it',
    400,
    {
      error: {
        code: 400,
        message: 'Provider returned error',
        metadata: {
          provider_name: 'Anthropic',
          raw: '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
        },
      },
    },
    { limitTokens: 200_000, sentTokens: 210_000 },
  ],
  [
    'llama.cpp, ggml-org/llama.cpp pull request 15780',
    400,
    {
      error: {
        code: 400,
        message:
          'the request exceeds the available context size. try increasing the context size or enable context shift',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 14_429,
        n_ctx: 8_192,
      },
    },
    { limitTokens: 8_192, sentTokens: 14_429 },
  ],
  [
    'llama.cpp, newer',
    400,
    {
      error: {
        code: 400,
        message: 'request (1407 tokens) exceeds the available context size (256 tokens), try increasing it',
        type: 'exceed_context_size_error',
      },
    },
    { limitTokens: 256, sentTokens: 1_407 },
  ],
  [
    'llama.cpp, older, QwenLM/qwen-code issue 371',
    500,
    {
      error: {
        code: 500,
        message:
          'the request exceeds the available context size. try increasing the context size or enable context shift',
        type: 'server_error',
      },
    },
  ],
  [
    'llama-cpp-python, rllm-team/rllm issue 55',
    400,
    said('Requested tokens (516) exceed context window of 512'),
    { limitTokens: 512, sentTokens: 516 },
  ],
  [
    'vLLM, vllm-project/vllm issue 20409',
    400,
    {
      object: 'error',
      message:
        "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
      type: 'BadRequestError',
      code: 400,
    },
    { limitTokens: 16_384, sentTokens: 112_946, wishTokens: 10_000 },
  ],
  [
    'vLLM, newer, cloudflare/cloudflare-docs issue 29731',
    400,
    said(
      "This model's maximum context length is 131072 tokens. However, you requested 16000 output tokens and your prompt contains at least 131000 input tokens, for a total of at least 147000 tokens. Please reduce the length of the input prompt or reduce max_tokens.",
    ),
    { limitTokens: 131_072, sentTokens: 131_000, wishTokens: 16_000 },
  ],
  [
    'vLLM, multimodal, thu-coai/Glyph issue 9',
    400,
    said(
      'The decoder prompt (length 163840) is longer than the maximum model length of 131072. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.',
    ),
    { limitTokens: 131_072, sentTokens: 163_840 },
  ],
  [
    'SGLang, QwenLM/Qwen3 issue 1321',
    400,
    {
      object: 'error',
      message: "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
      type: 'BadRequestError',
      code: 400,
    },
    { limitTokens: 40_960, sentTokens: 61_709 },
  ],
  [
    'SGLang, sgl-project/sglang issue 4048',
    400,
    { message: 'Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input.' },
    { limitTokens: 59_862, sentTokens: 160_062 },
  ],
  [
    'SGLang with a reply, anomalyco/models.dev pull request 4422',
    400,
    said(
      "Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total of 276878 tokens: 255216 tokens from the input messages and 21662 tokens for the completion.",
    ),
    { limitTokens: 256_000, sentTokens: 255_216 },
  ],
  [
    'LM Studio, lmstudio-ai/lmstudio-bug-tracker issue 546',
    400,
    {
      error:
        'Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input.',
    },
    { limitTokens: 32_768, sentTokens: 111_490 },
  ],
  [
    'LM Studio, newer',
    400,
    {
      error:
        'The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input',
    },
  ],
  ['Ollama, its server', 400, { error: 'prompt too long; exceeded max context length by 4230 tokens' }],
  ['Ollama, its server, embedding and chat', 500, { error: 'the input length exceeds the context length' }],
  [
    'DeepSeek, evalstate/fast-agent issue 621',
    400,
    said(
      "This model's maximum context length is 131072 tokens. However, you requested 138692 tokens (130500 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
      { code: 'invalid_request_error' },
    ),
    { limitTokens: 131_072, sentTokens: 130_500, wishTokens: 8_192 },
  ],
  [
    'Together, its API',
    422,
    said(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8100 `inputs` tokens and 512 `max_new_tokens`',
    ),
    { limitTokens: 8_193, sentTokens: 8_100, wishTokens: 512 },
  ],
  [
    'Text Generation Inference, its router',
    422,
    {
      error: 'Input validation error: `inputs` must have less than 4095 tokens. Given: 6001',
      error_type: 'validation',
    },
    { limitTokens: 4_095, sentTokens: 6_001 },
  ],
  [
    'Fireworks, its API',
    400,
    said('The prompt is too long: 139274, model maximum context length: 131071', { code: 'invalid_request_error' }),
    { limitTokens: 131_071, sentTokens: 139_274 },
  ],
  [
    'Alibaba, QwenLM/qwen-code issue 98',
    400,
    said('<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]', {
      code: 'invalid_parameter_error',
    }),
    { limitTokens: 204_800 },
  ],
  [
    'Moonshot, MoonshotAI/kimi-cli issue 2011',
    400,
    said('Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)'),
    { limitTokens: 262_144, sentTokens: 269_030 },
  ],
  [
    'Moonshot, MoonshotAI/MoonshotAI-Cookbook issue 18',
    400,
    said('model max length exceeded, max length:8192'),
    { limitTokens: 8_192 },
  ],
  [
    'Perplexity, its API',
    400,
    said("Prompt tokens exceed the model's maximum context length of 127072 tokens."),
    { limitTokens: 127_072 },
  ],
  [
    'GitHub Copilot, microsoft/vscode issue 289219',
    400,
    {
      error: {
        message: 'prompt token count of 138898 exceeds the limit of 64000',
        code: 'model_max_prompt_tokens_exceeded',
      },
    },
    { limitTokens: 64_000, sentTokens: 138_898 },
  ],
  [
    'GitHub Copilot without a code, microsoft/vscode-copilot-release issue 6700',
    400,
    { error: { message: 'prompt token count of 65446 exceeds the limit of 64000', param: '', code: '', type: '' } },
    { limitTokens: 64_000, sentTokens: 65_446 },
  ],
  [
    'LiteLLM, its exceptions',
    400,
    said(
      'litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - Error code: 400',
      { type: 'ContextWindowExceededError' },
    ),
  ],
  [
    'LiteLLM before Anthropic, kortix-ai/suna issue 172',
    400,
    said(
      'litellm.BadRequestError: AnthropicException - b\'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 204000 tokens > 200000 maximum"}}\'',
    ),
    { limitTokens: 200_000, sentTokens: 204_000 },
  ],
  ['MiniMax, its API', 400, said('invalid params, context window exceeds limit (2013)')],
  [
    'Zhipu, NousResearch/hermes-agent pull request 1877',
    400,
    { error: { code: '1261', message: 'Prompt exceeds max length' } },
  ],
  [
    'Volcengine, its API',
    400,
    {
      error: {
        code: 'InvalidParameter',
        message: 'Total tokens of image and text exceed max message tokens. Request id: 02170',
      },
    },
  ],
  [
    'SiliconFlow, sjzar/chatlog issue 30',
    400,
    { code: 20015, message: 'length of prompt_tokens (163280) must be less than max_seq_len (32768).' },
    { limitTokens: 32_768, sentTokens: 163_280 },
  ],
  [
    'NVIDIA and others with a server of their own, anomalyco/opencode issue 17746',
    400,
    said(
      "You passed 131073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=131073)",
    ),
    { limitTokens: 131_072, sentTokens: 131_073 },
  ],
  [
    'Cloudflare, its API',
    400,
    {
      errors: [
        {
          message:
            'AiError: The estimated number of input and maximum output tokens (40000) exceeded this model context window limit (24000).',
          code: 5021,
        },
      ],
    },
  ],
  [
    'Poolside by way of OpenRouter',
    400,
    said('Input length 140000 exceeds the maximum allowed input length of 131072 tokens.'),
    { limitTokens: 131_072, sentTokens: 140_000 },
  ],
  [
    'a proxy for OpenAI, a text in an array',
    400,
    [
      {
        error: {
          code: 400,
          message: 'The input token count (314175) exceeds the maximum number of tokens allowed (131072).',
        },
      },
    ],
    { limitTokens: 131_072, sentTokens: 314_175 },
  ],
]);

type Wish = readonly [source: string, body: unknown, mostTokens: number];
const WISHES: readonly Wish[] = [
  [
    'OpenAI, ChatGPTNextWeb/NextChat issue 3195',
    said(
      'max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.',
    ),
    4_096,
  ],
  [
    'OpenAI, the field that others have as the text, AQBot-Desktop/AQBot issue 93',
    {
      error: {
        message: 'Param Incorrect',
        param:
          'max_tokens is too large: 1048576. This model supports at most 131072 completion tokens, whereas you provided 1048576.',
      },
    },
    131_072,
  ],
  [
    'OpenAI responses, docs: error codes',
    said(
      "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 200000 instead.",
    ),
    128_000,
  ],
  [
    'Anthropic, docs: errors',
    said('max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5'),
    64_000,
  ],
  [
    'Bedrock, aws-samples/bedrock-access-gateway issue 41',
    {
      message:
        'The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048.',
    },
    2_048,
  ],
  [
    'Vertex, Google Cloud docs: parameters',
    {
      error: {
        code: 400,
        message:
          'Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.',
      },
    },
    65_536,
  ],
  [
    'Groq, RooCodeInc/Roo-Code issue 5729',
    said(
      '`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the `context_window` for this model',
    ),
    16_384,
  ],
  ['DeepSeek, its API', said('Invalid max_tokens value, the valid range of max_tokens is [1, 8192]'), 8_192],
  [
    'Alibaba, its API',
    said('<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]'),
    8_192,
  ],
  [
    'Volcengine, Gitlawb/openclaude issue 331',
    {
      error: {
        code: 'InvalidParameter',
        message:
          'The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 32000 instead.',
      },
    },
    12_288,
  ],
  ['Cohere and others', said('max_tokens cannot exceed 4096 for this model'), 4_096],
  // The request fits, and what it leaves is less than the reply that was asked for: half of that is asked for.
  [
    'OpenAI, ChatGPTNextWeb/NextChat issue 3195: the wish and the request are more than the window',
    said(
      "This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
      { code: 'context_length_exceeded' },
    ),
    4_064,
  ],
  [
    'Anthropic, continuedev/continue issue 8454: the same',
    said(
      'input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or `max_tokens` and try again',
    ),
    28_173,
  ],
  [
    'DeepSeek, evalstate/fast-agent issue 621: the same',
    said(
      "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    ),
    4_065,
  ],
  [
    'OpenRouter, OpenHands/OpenHands issue 9937: the same',
    said(
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output). Please reduce the length of either one.",
    ),
    61_594,
  ],
  [
    'vLLM: the same',
    said(
      "'max_tokens' or 'max_completion_tokens' is too large: 40000. This model's maximum context length is 32768 tokens and your request has 500 input tokens (40000 > 32768 - 500).",
    ),
    16_134,
  ],
  [
    'Text Generation Inference, huggingface/chat-ui issue 1149: the same',
    said(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`',
    ),
    994,
  ],
];
export const TOO_LONG_A_REPLY: readonly {
  readonly source: string;
  readonly body: unknown;
  readonly mostTokens: number;
}[] = WISHES.map(([source, body, mostTokens]) => ({ source, body, mostTokens }));
