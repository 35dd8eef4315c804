/**
 * What an error of a model says of itself. Its text is not searched, since texts are for people and change; a reply that is JSON is
 * read by its fields. Only `overflow.ts` has to read texts.
 */
import { askedWaitMs, describeThrown, type ErrorData, fieldOf as field, headerIn, PilotageError } from '#core';

const MAX_MESSAGE_CHARS = 256;
const MAX_URL_CHARS = 200;
const MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1_000;
const MAX_CAUSES = 5;
/** Fields of a JSON error reply, and of the items that its error lists. */
const MAX_BODY_CHARS = 16_384;
const MAX_DETAILS = 16;

/** Statuses below 500 of a server that may take the same request later. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429]);
/** Statuses of a refused key: it is missing or wrong, it may not use this model, or its account is empty. */
const KEY_STATUSES: ReadonlySet<number> = new Set([401, 402, 403]);
/** Providers' own codes for a refused key, with any status: some send 429 for an empty account, which no wait fills. */
const KEY_WORDS: ReadonlySet<unknown> = new Set([
  'insufficient_quota',
  'insufficient_balance',
  'billing_not_active',
  'billing_hard_limit_reached',
  'account_deactivated',
  'invalid_api_key',
  // Anthropic sends these, also in a stream, where no status comes with them.
  'authentication_error',
  'permission_error',
  'billing_error',
  // Google sends this with 400 for a wrong key.
  'API_KEY_INVALID',
]);
/** Providers' own codes of a server that may take the same request later. A status that says otherwise counts more. */
const PASSING_WORDS: ReadonlySet<unknown> = new Set([
  'overloaded_error',
  'api_error',
  'rate_limit_error',
  'timeout_error',
  'server_error',
  'service_unavailable_error',
  'rate_limit_exceeded',
  'server_is_overloaded',
  // The model wrote a call that its server cannot read.
  'tool_use_failed',
]);
/** Codes of a request that can never succeed, in a stream that was accepted before. */
const LASTING_WORDS: ReadonlySet<unknown> = new Set([
  'invalid_request_error',
  'request_too_large',
  'context_length_exceeded',
  'not_found_error',
  'model_not_found',
]);
/** Names of errors about a key that cannot be read or is too old, with any status. */
const KEY_NAMES: ReadonlySet<unknown> = new Set([
  'AI_LoadAPIKeyError',
  'CredentialsProviderError',
  'ExpiredTokenException',
  'UnrecognizedClientException',
]);
/** Statuses of a wrong address: nothing has that name, or nothing there takes such requests. */
const UNKNOWN_STATUSES: ReadonlySet<number> = new Set([404, 405, 410]);
const TOO_EARLY = 425;
/** Codes when nothing listens at the address, or the host name is unknown. */
const NOBODY_CODES: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND']);
/** Codes when a server listens, but not over TLS, or with a certificate that is not trusted. */
const TLS_CODE: RegExp = /^(ERR_SSL_|ERR_TLS_|CERT_|UNABLE_TO_)|SELF_SIGNED_CERT/;
const NETWORK_CODES: ReadonlySet<string> = new Set([
  ...NOBODY_CODES,
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'ENETDOWN',
  'ENETUNREACH',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ERR_NETWORK',
]);
/** Names of errors of a client that was used wrongly: nothing was sent. */
const MISUSED_CODE: RegExp = /^UND_ERR_(INVALID_|NOT_SUPPORTED)/;
/** Names of errors that end a call which the caller has not given up, and of those that say no more than that it may pass. */
const PASSING_NAMES: ReadonlySet<unknown> = new Set([
  'TimeoutError',
  'AbortError',
  'APIConnectionError',
  'APIConnectionTimeoutError',
  'ThrottlingException',
]);
/** Statuses of gRPC: DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE. Its clients put them where HTTP's would not fit. */
const PASSING_GRPC: ReadonlySet<unknown> = new Set([4, 8, 14]);
/** Names of the AI SDK's errors of a reply, to a request that was taken, of which nothing can be made. */
const UNREADABLE: ReadonlySet<unknown> = new Set([
  'AI_InvalidResponseDataError',
  'AI_EmptyResponseBodyError',
  'AI_NoContentGeneratedError',
  'AI_JSONParseError',
]);

/**
 * Why a model gives no reply, when it is not the request's fault.
 * - `away`: the model may reply later.
 * - `unreachable`: the model may reply later, but nothing listens at its address now.
 * - `key_refused`, `model_unknown`, `misdirected`: the model does not reply before somebody has changed something.
 */
export type Unavailable = 'away' | 'unreachable' | 'key_refused' | 'model_unknown' | 'misdirected';

/**
 * A reply that broke off without an error of the provider, or that we broke off. It may pass.
 * - `model_stalled`: nothing came for too long.
 * - `model_interrupted`: the reply ended without a finish.
 * - `model_timeout`: the reply was not whole in time.
 * - `model_reply_too_large`: the reply is longer than any that is read.
 */
export class BrokenReply extends Error {
  override readonly name: string = 'BrokenReply';
  readonly code: 'model_stalled' | 'model_interrupted' | 'model_timeout' | 'model_reply_too_large';
  readonly isRetryable: boolean = true;

  constructor(code: BrokenReply['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The server sends the request somewhere else, where neither it nor the key may go. */
export class MisdirectedRequest extends Error {
  override readonly name: string = 'MisdirectedRequest';
  readonly code: 'model_redirected' = 'model_redirected';
  readonly isRetryable: boolean = false;
}

/** Why the model is not available; `undefined` when the error is about the request, or says nothing. */
export function whyUnavailable(error: unknown, inStream: boolean): Unavailable | undefined {
  if (isKeyRefused(error)) return 'key_refused';
  if (closedPortOf(error) !== undefined) return 'misdirected';
  if (isTransientFailure(error, inStream)) return isUnreachable(networkCodeOf(error) ?? '') ? 'unreachable' : 'away';
  if (causeOf(error, MisdirectedRequest) !== undefined) return 'misdirected';
  const status = httpStatusOf(error) ?? 0;
  if (KEY_STATUSES.has(status)) return 'key_refused';
  const isUnknown =
    providerWordsOf(error).includes('model_not_found') || namesOf(error).includes('AI_NoSuchModelError');
  // A redirect that leads nowhere, and other statuses that do not answer a request.
  const isElsewhere = status >= 300 && status < 400;
  return isUnknown || isElsewhere || UNKNOWN_STATUSES.has(status) ? 'model_unknown' : undefined;
}

function isUnreachable(code: string): boolean {
  return NOBODY_CODES.has(code) || TLS_CODE.test(code);
}

function isKeyRefused(error: unknown): boolean {
  return (
    namesOf(error).some((name) => KEY_NAMES.has(name)) || providerWordsOf(error).some((word) => KEY_WORDS.has(word))
  );
}

/** What is wrong and what to do, in a sentence or two. Nothing of it is the server's: servers repeat keys. */
export function remedyFor(why: Unavailable, error: unknown, model: string): string | undefined {
  const { code } = failureData(error);
  const url = urlOf(error);
  const at = url === undefined ? '' : ` at ${url}`;
  switch (why) {
    case 'unreachable':
      if (TLS_CODE.test(code)) {
        return `No safe connection to the server of the model ${model}${at} (${code}): it speaks no TLS, or its certificate is not trusted. Set the right address, or have the certificate trusted.`;
      }
      return `Nothing listens${at} (${code}): the server of the model ${model} is not there. Start it, or set the right address.`;
    case 'key_refused':
      return `The server${at} refused the key for the model ${model} (${code}). Set a valid key that may use it and whose account is in credit.`;
    case 'model_unknown':
      return `The server${at} knows no model ${model} (${code}). Name a model that it has, or set the right address.`;
    case 'misdirected': {
      const port = closedPortOf(error);
      if (port !== undefined) return `${whyClosed(port)} Set the right address of the model ${model}.`;
      return causeOf(error, MisdirectedRequest)?.message;
    }
    case 'away':
      return undefined;
    default:
      return why satisfies never;
  }
}

/**
 * May the same request succeed later, or with another model? Before a reply has begun an error has to say so itself. Inside
 * a stream that the provider had accepted, it may unless the error says otherwise.
 */
export function isTransientFailure(error: unknown, inStream: boolean): boolean {
  const broken = causeOf(error, BrokenReply);
  if (broken !== undefined) return true;
  const said = saidToPass(error);
  const status = httpStatusOf(error);
  // The AI SDK's errors derive the flag from the status; below 300 the request was taken, and what came in reply was unreadable.
  const wasTaken = status !== undefined && status < 300;
  // A request that was sent somewhere else means a wrong address, whatever the provider says.
  if (causeOf(error, MisdirectedRequest) !== undefined) return false;
  // The AI SDK does not know that one.
  if (said === true || status === TOO_EARLY) return true;
  if (said === false && !wasTaken) return false;
  const names = namesOf(error);
  const isPassing = names.some((name) => PASSING_NAMES.has(name) || UNREADABLE.has(name));
  if (status !== undefined && status >= 400) {
    return status >= 500 || PASSING_STATUSES.has(status) || names.includes('ThrottlingException');
  }
  const words = providerWordsOf(error);
  if (isPassing || words.some((word) => PASSING_WORDS.has(word))) return true;
  if (words.some((word) => LASTING_WORDS.has(word))) return false;
  return inStream || wasTaken || networkCodeOf(error) !== undefined || isGrpcPassing(error) || isBareTypeError(error);
}

function isGrpcPassing(error: unknown): boolean {
  // The numbers of a DOMException are others.
  return layersOf(error).some((layer) => PASSING_GRPC.has(field(layer, 'code')) && !(layer instanceof DOMException));
}

/**
 * What `fetch` throws when nothing came of a request, as the standard has it: a TypeError that says nothing else of itself. One with
 * a cause or a code says why.
 */
function isBareTypeError(error: unknown): boolean {
  if (field(error, 'name') !== 'TypeError') return false;
  return ['cause', 'code', 'input'].every((name) => field(error, name) === undefined);
}

/** What the error says of itself, or of what it wraps. The client of AWS says why it may pass. */
function saidToPass(error: unknown): unknown {
  for (const layer of layersOf(error)) {
    const said = field(layer, 'isRetryable') ?? field(layer, 'retryable');
    if (typeof said === 'boolean') return said;
    if (typeof field(layer, '$retryable') === 'object' && field(layer, '$retryable') !== null) return true;
  }
  return undefined;
}

/**
 * Names of the error and of the errors that it wraps. Many clients do not set the name of their errors, which are then known by
 * their class.
 */
function namesOf(error: unknown): readonly unknown[] {
  return layersOf(error).map((layer) => {
    const name = field(layer, 'name');
    return name === 'Error' ? field(field(layer, 'constructor'), 'name') : name;
  });
}

/** How long the provider asks to be left alone, at most a day. */
export function retryAfterMs(error: unknown, nowMs: number): number | undefined {
  const exact = headerOf(error, 'retry-after-ms');
  const askedMs = askedWaitMs({ exact, plain: headerOf(error, 'retry-after') }, nowMs);
  return askedMs === undefined ? undefined : Math.min(askedMs, MAX_RETRY_AFTER_MS);
}

/** The error as a remark holds it. */
export function failureData(error: unknown): ErrorData {
  const status = httpStatusOf(error) ?? 0;
  // What a server says of a key may have the key in it.
  if (KEY_STATUSES.has(status) || isKeyRefused(error)) {
    return { code: codeOf(error), message: `${status === 0 ? '' : `HTTP ${status}: `}the key was refused.` };
  }
  const message = field(error, 'message');
  const text = typeof message === 'string' && message !== '' ? message : describeThrown(error);
  return {
    code: codeOf(error),
    message: [...text.slice(0, 2 * MAX_MESSAGE_CHARS)].slice(0, MAX_MESSAGE_CHARS).join(''),
  };
}

/** The HTTP status that the error names, wherever the makers of clients put it. */
export function httpStatusOf(error: unknown): number | undefined {
  for (const layer of layersOf(error)) {
    const response = field(layer, 'response');
    const said = [
      field(layer, 'statusCode'),
      field(layer, 'status'),
      field(layer, 'status_code'),
      field(response, 'status'),
      field(response, 'statusCode'),
      field(field(layer, '$metadata'), 'httpStatusCode'),
    ];
    const status = said.map(numberOf).find((value) => isStatus(value, 100));
    if (status !== undefined) return status;
    // Gateways put it there when the failure comes inside a stream.
    const code = numberOf(field(layer, 'code'));
    if (isStatus(code, 400)) return code;
  }
  return undefined;
}

function numberOf(value: unknown): unknown {
  return typeof value === 'string' && /^[1-5]\d\d$/.test(value) ? Number(value) : value;
}

/** The error, what it wraps and what caused it: clients that try again themselves throw an error of their own at the end. */
export function layersOf(error: unknown): readonly unknown[] {
  const layers: unknown[] = [];
  for (let at = error; at !== undefined && at !== null && layers.length < MAX_CAUSES; ) {
    layers.push(at);
    at = field(at, 'lastError') ?? field(at, 'cause') ?? field(field(at, 'errors'), '0');
  }
  return layers;
}

function codeOf(error: unknown): string {
  if (PilotageError.is(error)) return error.code;
  const ours = causeOf(error, BrokenReply) ?? causeOf(error, MisdirectedRequest);
  if (ours !== undefined) return ours.code;
  const status = httpStatusOf(error);
  if (status !== undefined && status >= 400) return `http_${status}`;
  return networkCodeOf(error) ?? 'model_error';
}

function networkCodeOf(error: unknown): string | undefined {
  for (const layer of layersOf(error)) {
    const code = field(layer, 'code');
    if (
      typeof code === 'string' &&
      !MISUSED_CODE.test(code) &&
      (NETWORK_CODES.has(code) || code.startsWith('UND_ERR_') || TLS_CODE.test(code))
    )
      return code;
  }
  return undefined;
}

/** The error itself, or what caused it: the AI SDK wraps what a fetch throws. */
function causeOf<E>(error: unknown, kind: abstract new (...args: never) => E): E | undefined {
  return layersOf(error).find((layer): layer is E => layer instanceof kind);
}

/**
 * The port that the request was for, where `fetch` sends nothing at all. With a status, or a word of the network, something was
 * sent.
 */
function closedPortOf(error: unknown): number | undefined {
  if (httpStatusOf(error) !== undefined || networkCodeOf(error) !== undefined) return undefined;
  const url = layersOf(error)
    .map((layer) => field(layer, 'url'))
    .find((given) => given !== undefined);
  return typeof url === 'string' ? closedPort(url) : undefined;
}

/** The provider's own words for what is wrong, as OpenAI and those who follow it, Anthropic, and Google spell them. */
export function providerWordsOf(error: unknown): readonly unknown[] {
  return layersOf(error).flatMap((layer) =>
    [layer, field(layer, 'data'), repliedIn(layer)].flatMap((said) => {
      const inner = field(said, 'error');
      const details = field(inner, 'details');
      const reasons = Array.isArray(details) ? details.slice(0, MAX_DETAILS).map((one) => field(one, 'reason')) : [];
      // The last is that of a response which OpenAI tells in a stream.
      const worded = [inner, field(inner, 'error'), said, field(field(said, 'response'), 'error')];
      return [...worded.flatMap((at) => [field(at, 'code'), field(at, 'type')]), ...reasons];
    }),
  );
}

/**
 * The reply as it came, where that is JSON: of its error a client may have left out what says most. Google's client has it as its
 * message.
 */
function repliedIn(layer: unknown): unknown {
  for (const text of [field(layer, 'responseBody'), field(layer, 'message')]) {
    if (typeof text !== 'string' || !text.startsWith('{') || text.length > MAX_BODY_CHARS) continue;
    try {
      return JSON.parse(text);
    } catch {
      // The value is a text for people, or was cut off.
    }
  }
  return undefined;
}

/** Where the request went, without parts of the address that may be secret. */
function urlOf(error: unknown): string | undefined {
  const given = field(error, 'url');
  if (typeof given !== 'string' || !URL.canParse(given)) return undefined;
  const { origin, pathname } = new URL(given);
  return `${origin}${pathname}`.slice(0, MAX_URL_CHARS);
}

/** A header of the reply that the error is about. */
function headerOf(error: unknown, name: string): string | undefined {
  for (const layer of layersOf(error)) {
    for (const given of [
      field(layer, 'responseHeaders'),
      field(layer, 'headers'),
      field(field(layer, 'response'), 'headers'),
    ]) {
      const found = headerIn(given, name);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function isStatus(value: unknown, least: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value < 600;
}

/**
 * Ports to which `fetch` sends nothing, whoever listens there: they belong to other protocols. The list is that of the Fetch
 * standard.
 */
const CLOSED: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/** The port of the address, if `fetch` sends nothing to it. */
export function closedPort(url: string): number | undefined {
  const port = URL.canParse(url) ? Number(new URL(url).port) : 0;
  return CLOSED.has(port) ? port : undefined;
}

function whyClosed(port: number): string {
  return `Nothing is sent to the port ${port}: fetch refuses it, because it belongs to another protocol.`;
}
