/**
 * Files that somebody names by their URL are fetched once, when they are accepted. Whoever may write a message could otherwise have this process read
 * what only it can reach, so each address is checked, and the connection is made to the address that was checked.
 */
import type { IncomingMessage } from 'node:http';
import { describeThrown, type InputFile, mediaTypeOf, PilotageError } from '#core';
import type { FetchOptions, FileAtUrl, FileOptions } from '#messages';
import { type Address, addressesOf, ask, type FetchPorts, SYSTEM } from './guarded-request.ts';
import { isPublicAddress } from './public-address.ts';

export { type FetchPorts, isPublicAddress };

const DEFAULT_MAX_BYTES = 20 * 1_024 * 1_024;
const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 3;
const HEADERS = { accept: '*/*', 'accept-encoding': 'identity' };
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * @param options of the runtime.
 * @throws PilotageError `url_refused` for an address that must not be read, `url_failed` for one that could not be.
 */
export async function fetchFile(
  file: FileAtUrl,
  { fetch }: FileOptions,
  ports: FetchPorts = SYSTEM,
): Promise<InputFile> {
  if (fetch === undefined) {
    const how = 'Give its bytes, or allow it: createRuntime({ files: { fetch: { allowHosts: [...] } } }).';
    throw refused(file.url, `this runtime fetches no files. ${how}`);
  }
  const options = fetch === true ? {} : fetch;
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return await follow(file, options, { ...ports, signal });
  } catch (error) {
    if (PilotageError.is(error)) throw error;
    const why = signal.aborted ? `it took longer than ${timeoutMs} ms` : describeThrown(error);
    throw failed(file.url, why, error);
  }
}

interface Asking extends FetchPorts {
  readonly signal: AbortSignal;
}

async function follow(file: FileAtUrl, options: FetchOptions, ports: Asking): Promise<InputFile> {
  let url = addressOf(file.url, file.url);
  for (let redirects = 0; ; redirects += 1) {
    const response = await ask(url, await reachable(url, file.url, options, ports), {
      signal: ports.signal,
      headers: HEADERS,
    });
    const { statusCode = 0, headers } = response;
    if (!REDIRECTS.has(statusCode) || headers.location === undefined) {
      if (statusCode === 200) return await fileIn(response, url, file, options);
      response.destroy();
      throw failed(file.url, `its server answered with the status ${statusCode}`);
    }
    response.destroy();
    if (redirects === MAX_REDIRECTS) throw failed(file.url, `it was sent on more than ${MAX_REDIRECTS} times`);
    url = addressOf(headers.location, file.url, url);
  }
}

/** @param given the address that somebody gave, for errors. */
function addressOf(text: string, given: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw refused(given, 'it is no URL. Give one that begins with https://');
  const url = new URL(text, base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw refused(given, `only http: and https: are read, and this leads to ${url.protocol}`);
  }
  if (url.username === '' && url.password === '') return url;
  throw refused(given, 'it has a user name or a password in it. Fetch the file yourself, and give its bytes.');
}

/** The addresses of its host, each of which may be asked. */
async function reachable(
  { hostname, host }: URL,
  given: string,
  { allowHosts }: FetchOptions,
  ports: FetchPorts,
): Promise<readonly Address[]> {
  const isListed = allowHosts?.some((each) => [hostname, host].includes(each.toLowerCase()));
  if (isListed === false) throw refused(given, `${host} is not among the hosts of files.fetch.allowHosts.`);
  const addresses = await addressesOf(hostname, ports, (hidden, isNamed) => {
    if (!isNamed) {
      if (isListed === true) return undefined;
      const how = 'A program that means it lists it: files.fetch.allowHosts.';
      return refused(given, `${hidden} is not a public address. ${how}`);
    }
    return refused(given, `${hostname} does not lead to a public address.`);
  });
  if (addresses.length === 0) throw failed(given, `${hostname} has no address`);
  return addresses;
}

async function fileIn(
  response: IncomingMessage,
  url: URL,
  file: FileAtUrl,
  { maxBytes = DEFAULT_MAX_BYTES }: FetchOptions,
): Promise<InputFile> {
  const { headers } = response;
  const tooLarge = (): PilotageError => {
    response.destroy();
    return refused(file.url, `the file is larger than ${maxBytes} bytes (files.fetch.maxBytes).`);
  };
  const coding = headers['content-encoding'];
  if (coding !== undefined && coding !== 'identity') {
    response.destroy();
    throw failed(file.url, `its server sent it as ${coding}, which was not asked for`);
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > maxBytes) throw tooLarge();
    pieces.push(piece);
  }
  if (size === 0) throw failed(file.url, 'the file is empty');
  const bytes = new Uint8Array(Buffer.concat(pieces));
  const mime = mediaTypeOf(file.mime ?? headers['content-type'] ?? '', bytes);
  const fileName = file.fileName ?? lastPart(url);
  return { bytes, mime: mime === '' ? 'application/octet-stream' : mime, ...(fileName === '' ? {} : { fileName }) };
}

function lastPart({ pathname }: URL): string {
  const last = pathname.slice(pathname.lastIndexOf('/') + 1);
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** What stands behind the path of an address may be a key. */
function shown(given: string): string {
  if (!URL.canParse(given)) return JSON.stringify(given.slice(0, 200));
  const { origin, pathname, protocol } = new URL(given);
  return `${origin === 'null' ? protocol : origin}${pathname}`.slice(0, 200);
}

function refused(given: string, why: string): PilotageError {
  return new PilotageError('url_refused', `The file at ${shown(given)} is not fetched: ${why}`);
}

function failed(given: string, why: string, cause?: unknown): PilotageError {
  const message = `The file at ${shown(given)} could not be fetched: ${why}. Try again, or give its bytes.`;
  return new PilotageError('url_failed', message, cause === undefined ? {} : { cause });
}
