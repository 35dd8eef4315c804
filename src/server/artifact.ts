/** The bytes of a file, whole or in part. Whatever it is, no browser carries it out as a page of this server. */
import { PilotageError } from '#core';

interface Found {
  readonly bytes: Uint8Array;
  readonly mime: string;
}

/** What browsers show and do not carry out. */
const SHOWN =
  /^(?:image\/(?:png|jpeg|gif|webp|avif)|audio\/[\w.+-]+|video\/[\w.+-]+|application\/(?:pdf|json)|text\/(?:plain|csv|markdown))$/;

/**
 * @param disposition `inline`: a page may show it; a type that browsers carry out is saved all the same.
 * @throws PilotageError `artifact_not_found`.
 */
export function artifactResponse(
  asked: Headers,
  ref: string,
  found: Found | undefined,
  disposition: 'inline' | 'attachment' = 'attachment',
): Response {
  if (found === undefined)
    throw new PilotageError('artifact_not_found', `There is no artifact ${ref} in this session.`);
  const { bytes, mime } = found;
  const isShown = SHOWN.test(mime);
  const etag = `"${ref.replace(/[^\w-]/g, '')}"`;
  const headers: Record<string, string> = {
    'content-type': isShown ? mime : 'application/octet-stream',
    'content-disposition': isShown ? disposition : 'attachment',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    // Its name follows from its bytes.
    'cache-control': 'private, max-age=31536000, immutable',
    'accept-ranges': 'bytes',
    etag,
  };
  if (
    asked
      .get('if-none-match')
      ?.split(',')
      .some((each) => each.trim() === etag) === true
  )
    return new Response(null, { status: 304, headers });
  const condition = asked.get('if-range');
  const range = condition === null || condition === etag ? rangeIn(asked.get('range'), bytes.length) : undefined;
  if (range === undefined) return new Response(bodyOf(bytes), { headers });
  if (range === 'beyond') {
    const beyond = { ...headers, 'content-range': `bytes */${bytes.length}` };
    return new Response(null, { status: 416, headers: beyond });
  }
  const { first, last } = range;
  const partly = { ...headers, 'content-range': `bytes ${first}-${last}/${bytes.length}` };
  return new Response(bodyOf(bytes.subarray(first, last + 1)), { status: 206, headers: partly });
}

function bodyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

/** Anything but one range is answered with the whole. */
function rangeIn(
  header: string | null,
  size: number,
): { readonly first: number; readonly last: number } | 'beyond' | undefined {
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '') ?? [];
  if (from === '' && to === '') return undefined;
  if (from === '') {
    const length = Math.min(Number(to), size);
    return length === 0 ? 'beyond' : { first: size - length, last: size - 1 };
  }
  const first = Number(from);
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= size ? 'beyond' : { first, last };
}
