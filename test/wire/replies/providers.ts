/** Every provider package that is tried on the wire. */
import { anthropic } from './anthropic.ts';
import { bedrocks } from './bedrock.ts';
import { chats } from './chat.ts';
import { cohere } from './cohere.ts';
import { google } from './google.ts';
import { interactions } from './interactions.ts';
import { responses } from './responses.ts';
import type { Provider } from './saying.ts';

export const PROVIDERS: readonly Provider[] = [
  anthropic,
  ...chats,
  ...responses,
  google,
  interactions,
  ...bedrocks,
  cohere,
];
