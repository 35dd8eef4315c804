/** Which files a model can be sent, wherever they stand in a request. */
import { mediaTypeOf } from '#core';
import type { Recipient } from './provider-parts.ts';

/** Whether the model can be sent files of this MIME type. */
type TakesMime = (mime: string) => boolean;

export interface AttachmentRules {
  /** As a file at all. */
  readonly takes: TakesMime;
  /** How large a file of this media type may be. Default: any size. */
  readonly mostFileBytes?: (mime: string) => number;
}

export interface FileRules extends AttachmentRules, Pick<Recipient, 'provider'> {
  /** In a result. Default: nothing. */
  readonly takesInResults?: TakesMime;
  /** As a URL. Default: nothing. */
  readonly takesUrl?: (mime: string, url: string) => boolean;
}

/**
 * The media type under which the model is sent a file; `undefined`: it is told of it. A request with an empty file, one that is too large, or a
 * picture without the bytes of one would be refused, and so would all later ones.
 */
export function shownType(
  bytes: Uint8Array,
  mime: string,
  { takes, mostFileBytes }: AttachmentRules,
): string | undefined {
  const type = mediaTypeOf(mime, bytes);
  if (bytes.length === 0 || !takes(type)) return undefined;
  return mostFileBytes === undefined || bytes.length <= mostFileBytes(type) ? type : undefined;
}
