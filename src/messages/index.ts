/** Conversations in the words of the AI SDK: for its functions and for its clients. Nothing of that package is loaded. */
export type { Author } from '#core';
export type { FetchOptions, FileAtUrl, FileOptions, MessageFile, UserMessage } from './given.ts';
export type { TurnMessage } from './model-messages.ts';
export { toModelMessages } from './model-messages.ts';
export { type ClientCall, clientCalls, openCalls } from './open-calls.ts';
export type {
  OpenCall,
  RunTurns,
  TurnUIMessage,
  UICall,
  UIMetadata,
  UIOptions,
  UIPart,
} from './ui-messages.ts';
export { toUIMessages } from './ui-messages.ts';
