/** `pilotage/client`: our own API for browsers and programs. It loads nothing. */
export {
  type AcceptedSignal,
  Client,
  type ClientStartOptions,
  createClient,
  type GivenAnswer,
  type ListPage,
  type RunListQuery,
  type TakenAnswer,
  type WaitingListQuery,
} from './client.ts';
export { ClientError, type ClientOptions } from './http.ts';
export {
  type ClientAnswerOptions,
  type ClientResumption,
  ClientRun,
  type ReadEventsOptions,
  type UntilOptions,
} from './run.ts';
export { type ClientSendOptions, type ClientSentMessage, ClientSession, type ClientSessionOptions } from './session.ts';
