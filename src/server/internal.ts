/** What the other rooms and the tests may use of `server`. */

export type { Access, Authenticate } from './access.ts';
export { api } from './api/api.ts';
export { bearerKeys, newBearerKey } from './auth/bearer-keys.ts';
export { jwt } from './auth/jwt.ts';
export { proxyHeader } from './auth/proxy-header.ts';
export { createHandler, type Handler, type HandlerOptions } from './handler.ts';
export { type Served, serve } from './node.ts';
export type { Part } from './part.ts';
export { problem, RequestRefused } from './problem.ts';
export { post } from './webhooks/post.ts';
export { type WebhooksOptions, webhooks } from './webhooks/webhooks.ts';
