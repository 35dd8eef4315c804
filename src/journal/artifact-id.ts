/** The address of an artifact: a digest of its bytes. */
import { createHash } from 'node:crypto';
import { PilotageError } from '#core';

const REF_HEX_DIGITS = 32;

export interface Digest {
  readonly artifactRef: string;
  /** The whole SHA-256 in hex; the reference has its first half. */
  readonly sha256: string;
}

export function artifactDigest(bytes: Uint8Array): Digest {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { artifactRef: `art_${sha256.slice(0, REF_HEX_DIGITS)}`, sha256 };
}

/** @throws PilotageError `journal_conflict` when two artifacts share the first half of their digests. */
export function assertSameContent(digest: Digest, storedSha256: string): void {
  if (digest.sha256 === storedSha256) return;
  throw new PilotageError(
    'journal_conflict',
    `Other bytes are stored as ${digest.artifactRef}: their SHA-256 begins alike. The new ones were not stored.`,
  );
}
