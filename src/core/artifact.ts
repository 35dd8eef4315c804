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

/** So many artifacts of a session are counted: each run is told of them as it starts. */
export const MOST_ARTIFACTS_COUNTED = 1_000;
