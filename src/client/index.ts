/** `pilotage/client`: our own API for browsers and programs. It loads nothing. */
export {
  type AcceptedSignal,
  type AnswerTo,
  Client,
  type ClientStartOptions,
  createClient,
  type ErasedUser,
  type ListedWebhook,
  type ListPage,
  type RunListQuery,
  type TakenAnswer,
  type WaitingListQuery,
  type WebhookStanding,
} from './client.ts';
export { ClientError, type CreateClientOptions } from './http.ts';
export {
  type ClientAnswerOptions,
  type ClientResumption,
  ClientRun,
  type ReadEventsOptions,
  type UntilOptions,
} from './run.ts';
export { type ClientSendOptions, type ClientSentMessage, ClientSession, type ClientSessionOptions } from './session.ts';
