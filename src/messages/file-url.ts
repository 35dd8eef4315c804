/** Files of a session by their references, as addresses of their own scheme: messages of the AI SDK have a place for addresses alone. */
import type { ArtifactRef, Json, JsonObject, TurnFile } from '#core';

const SCHEME = 'artifact:';

type Reference = Pick<ArtifactRef, 'artifactRef' | 'sizeBytes'>;

/** `artifact:<reference>?size=<bytes>` */
export function artifactUrl({ artifactRef, sizeBytes }: Reference): string {
  return `${SCHEME}${encodeURIComponent(artifactRef)}?size=${sizeBytes}`;
}

/** The reference that an address of ours stands for; `undefined` for any other. */
export function referenceIn(url: string): Reference | undefined {
  if (!url.startsWith(SCHEME)) return undefined;
  const { pathname, searchParams } = new URL(url);
  const sizeBytes = Number(searchParams.get('size') ?? Number.NaN);
  return pathname === '' || !Number.isSafeInteger(sizeBytes)
    ? undefined
    : { artifactRef: decodeURIComponent(pathname), sizeBytes };
}

export function dataUrl({ mime }: Pick<TurnFile, 'mime'>, bytes: Uint8Array): string {
  return `data:${mime};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}`;
}

/** What we note in a message for ourselves, beside what providers are told. */
export const OURS = 'pilotage';

/** Options as providers get them, and what was noted for us. */
export function withoutOurs(options: JsonObject): { readonly options?: JsonObject; readonly ours?: Json } {
  const { [OURS]: ours, ...rest } = options;
  return {
    ...(Object.keys(rest).length === 0 ? {} : { options: rest }),
    ...(ours === undefined ? {} : { ours }),
  };
}
