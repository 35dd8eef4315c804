/** What the other rooms and the tests may use of `messages`. */
export { referenceIn } from './file-url.ts';
export type { FetchOptions, FileAtUrl, FileOptions, MessageFile, UserMessage } from './given.ts';
export type { TurnMessage } from './model-messages.ts';
export { toModelMessages } from './model-messages.ts';
export { clientCalls, openCalls } from './open-calls.ts';
export { type PlacedPart, readUIMessage } from './read-ui-message.ts';
export type { RunTurns, TurnUIMessage, UIOptions } from './ui-messages.ts';
export { toUIMessages } from './ui-messages.ts';
