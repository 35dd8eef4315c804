/** `pilotage/server`: a runtime behind HTTP. The protocols of clients are in modules below it, such as `pilotage/server/ai-sdk`. */
export { ACTIONS, type Access, type Action, type Authenticate, type Subject } from './access.ts';
export { type ApiOptions, api } from './api/api.ts';
export type { SignedEvents } from './api/signal-routes.ts';
export { type BearerKey, type BearerKeysOptions, bearerKeys, newBearerKey } from './auth/bearer-keys.ts';
export { type JwtClaims, type JwtOptions, jwt } from './auth/jwt.ts';
export { type ProxyHeaderOptions, proxyHeader } from './auth/proxy-header.ts';
export type { GuardOptions } from './guard.ts';
export { createHandler, type Handler, type HandlerOptions } from './handler.ts';
export { type Served, type ServeOptions, serve } from './node.ts';
export type { Part, PartContext, ServerEnv } from './part.ts';
export { type ErrorText, problem, RequestRefused } from './problem.ts';
export type { Visit } from './visit.ts';
export type { DelivererOptions } from './webhooks/deliverer.ts';
export type { PostOptions } from './webhooks/post.ts';
export type { Delivery, Webhook, WebhookOptions } from './webhooks/subscription.ts';
export { type WebhookState, Webhooks, type WebhooksOptions, webhooks } from './webhooks/webhooks.ts';
