/** A large value kept beside the journal, addressed by its content. */
export interface ArtifactRef {
  /** `art_` and the first 32 hex digits (128 bits) of the SHA-256 of the bytes. */
  readonly artifactRef: string;
  readonly mime: string;
  readonly sizeBytes: number;
}
