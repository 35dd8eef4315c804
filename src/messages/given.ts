/** Messages as programs give them, with files that may have to be fetched. */
import type { Author, InputArtifact, InputFile } from '#core';

/** A file by its URL. It is fetched once, when it is accepted, and stored as an artifact of the session. */
export interface FileAtUrl {
  /** `http:` or `https:`, without a user name or a password. */
  readonly url: string;
  /** Default: what the server calls it. */
  readonly mime?: string;
  /** Default: the last part of the address. */
  readonly fileName?: string;
}

/** A file of a message: its bytes, the reference of an artifact of the session, or its URL. */
export type MessageFile = InputArtifact | InputFile | FileAtUrl;

export interface UserMessage {
  /** The words. Absent or empty: the message has files alone. */
  readonly text?: string;
  readonly inputs?: readonly MessageFile[];
  /** Who has written it, as the program knows; models are told. A text is the name. */
  readonly author?: Author | string;
  /** True: a notice of the program, such as that a build has ended. Models are told that the user did not write it. Default false. */
  readonly notice?: boolean;
}

export interface FetchOptions {
  /**
   * Only files of these hosts are fetched: a name, or a name with its port (`files.example.com:8443`). Default: any. A host that is listed as an address
   * (`127.0.0.1`, `[::1]`) is reached although it is private; a name never leads to a private address.
   */
  readonly allowHosts?: readonly string[];
  /** How large a file may be. Default 20 MiB. */
  readonly maxBytes?: number;
  /** How long it may take until a file is here, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
}

export interface FileOptions {
  /** Files may be given by their URLs, which this process fetches. Default: they are refused. */
  readonly fetch?: true | FetchOptions;
}
