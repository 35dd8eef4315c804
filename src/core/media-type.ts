/** What a file is. What somebody calls it may be wrong, and a provider refuses a picture whose bytes say something else. */

/** How pictures begin, in hexadecimal digits. */
const PICTURES: readonly (readonly [start: RegExp, mime: string])[] = [
  [/^89504e47/, 'image/png'],
  [/^ffd8ff/, 'image/jpeg'],
  [/^47494638/, 'image/gif'],
  [/^52494646.{8}57454250/, 'image/webp'],
];

const MOST_BYTES = 12;

/** The type of a picture that every model with eyes knows; `undefined` for all else. */
export function pictureTypeOf(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, MOST_BYTES)).toString('hex');
  return PICTURES.find(([known]) => known.test(start))?.[1];
}

/** The media type of a file, without parameters. @param declared what it was called. */
export function mediaTypeOf(declared: string, bytes: Uint8Array): string {
  const [full = ''] = declared.toLowerCase().split(';');
  const type = full.trim();
  if (type !== '' && !type.startsWith('image/')) return type;
  const isKnown = PICTURES.some(([, mime]) => mime === type);
  return pictureTypeOf(bytes) ?? (isKnown || type === '' ? 'application/octet-stream' : type);
}
