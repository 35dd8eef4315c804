/** What the other rooms and the tests may use of `server`. */
export { api } from './api/api.ts';
export { createHandler } from './handler.ts';
export { serve } from './node.ts';
export type { Part } from './part.ts';
export { type WebhooksOptions, webhooks } from './webhooks/webhooks.ts';
