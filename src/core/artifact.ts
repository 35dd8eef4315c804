/** What the session keeps beside the journal: large values, attachments, files that tools and models make. */

/** A large value kept beside the journal, addressed by its content. */
export interface ArtifactRef {
  /** `art_` and the first 32 hex digits (128 bits) of the SHA-256 of the bytes. */
  readonly artifactRef: string;
  readonly mime: string;
  readonly sizeBytes: number;
}

/** An artifact that is a file, such as an attachment of the query. */
export interface InputArtifact extends ArtifactRef {
  readonly fileName?: string;
}

/** The media type of a picture by its first bytes, of which 12 are enough. `undefined` for other bytes. */
export function pictureType(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 12)).toString('latin1');
  if (start.startsWith('\x89PNG')) return 'image/png';
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (start.startsWith('GIF8')) return 'image/gif';
  return start.startsWith('RIFF') && start.endsWith('WEBP') ? 'image/webp' : undefined;
}
