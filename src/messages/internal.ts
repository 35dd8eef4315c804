/** What the other rooms and the tests may use of `messages`. */
export { chatCallId, clientCallId } from './call-id.ts';
export { artifactUrl, dataUrl, referenceIn } from './file-url.ts';
export type { FetchOptions, FileAtUrl, FileOptions, MessageFile, UserMessage } from './given.ts';
export type { TurnMessage } from './model-messages.ts';
export { toModelMessages } from './model-messages.ts';
export { clientCalls, openCalls } from './open-calls.ts';
export { type PlacedPart, readUIMessage } from './read-ui-message.ts';
export { NOT_ANSWERED, UNANSWERED_WORDS } from './told-calls.ts';
export { type HeardWords, type TurnChunkOptions, TurnChunks, type TurnListener } from './turn-chunks.ts';
export { UIAssembly } from './ui-assembly.ts';
export type { UIChunk } from './ui-chunks.ts';
export type { TurnUIMessage, UIPart } from './ui-messages.ts';
export { toUIMessages } from './ui-messages.ts';
