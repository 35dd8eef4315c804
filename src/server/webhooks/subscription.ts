/** What is stored of webhooks: their addresses, their runs, and how far each run is delivered. */
import { randomBytes } from 'node:crypto';
import {
  assertOptions,
  defined,
  type EventType,
  isEventType,
  isJsonObject,
  isRecorded,
  type Json,
  type JsonObject,
  type Namespace,
  type OptionShape,
  PilotageError,
  type StoreItem,
} from '#core';

export interface WebhookOptions {
  /** Unique in the tenant. A webhook that is put again under the same id is changed, and goes on where it was. */
  readonly id: string;
  /** The tenant whose runs are posted. The next four fields select among its runs. */
  readonly tenant: string;
  readonly user?: string;
  readonly session?: string;
  readonly agent?: string;
  readonly run?: string;
  /** The address that events are posted to: `https:` and public, unless the program allows the host (`allowHosts`). */
  readonly url: string;
  /** The types of recorded events that are posted. Default: all. */
  readonly events?: readonly EventType[];
  /** The key of the signature: `whsec_` and the base64 of 24 to 64 bytes. Default: the webhook's last secret, or a fresh one. */
  readonly secret?: string;
}

/** The form in which events are posted. */
export type WebhookFormat = 'events' | 'a2a' | 'a2a-0.3';

export interface Webhook extends WebhookOptions {
  readonly secret: string;
  readonly format: WebhookFormat;
  /** Headers that go with each post. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Events before this time are not posted. Milliseconds since the epoch. */
  readonly since: number;
}

/** How far the events of a run are delivered. The fields of failures are absent when the last post has not failed. */
export interface Delivery {
  readonly run: string;
  /** The journal position up to which all events are delivered. */
  readonly position: number;
  /** Which process posts just now, and when another one may take it over. Milliseconds since the epoch. */
  readonly claim?: { readonly owner: string; readonly until: number } | undefined;
  /** How many posts have failed in a row. With it come the times of the first and the last failure, that of the next attempt, and the last error. */
  readonly attempts?: number;
  readonly failingSince?: number;
  readonly failedAt?: number;
  readonly nextAt?: number;
  readonly error?: string;
  /** Since when nothing more of the run is posted, until `retry` is called. */
  readonly gaveUpAt?: number;
  /** The run has ended, and all its events are delivered. */
  readonly done?: true;
  /** When the run was stored. Milliseconds since the epoch. When it was deleted, another one may have its id. */
  readonly begun?: number;
}

const OPTIONS: OptionShape<WebhookOptions> = {
  id: 'text',
  tenant: 'text',
  user: 'text?',
  session: 'text?',
  agent: 'text?',
  run: 'text?',
  url: 'text',
  events: 'list?',
  secret: 'text?',
};
const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const ID = /^[\w:.@-]{1,200}$/;
/** @throws PilotageError `invalid_config`. */
export function assertWebhook(options: WebhookOptions): void {
  assertOptions('webhooks.put', options, OPTIONS);
  const { id, events = [], secret } = options;
  if (!ID.test(id)) throw wrong('The id of a webhook has 1 to 200 of the characters A-Z a-z 0-9 _ : . @ -');
  const unknown = events.find((type) => !isEventType(type));
  if (unknown !== undefined)
    throw wrong(
      `There are no events of the kind ${unknown}, so that the webhook would never post one. The type EventType of pilotage names those that there are, such as planner.finish.`,
    );
  const unrecorded = events.find((type) => !isRecorded({ type }));
  if (unrecorded !== undefined)
    throw wrong(
      `Events of the kind ${unrecorded} are not recorded, so that they cannot be delivered for certain. Leave it out.`,
    );
  if (secret === undefined) return;
  const bytes = Buffer.from(SECRET.exec(secret)?.[1] ?? '', 'base64').length;
  if (bytes < 24 || bytes > 64) throw wrong('The secret is whsec_ and the base64 of 24 to 64 random bytes.');
}

function wrong(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}

export function freshSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

export function isWanted({ events, since }: Webhook, type: EventType, occurredAt: number): boolean {
  return occurredAt >= since && (events === undefined || events.includes(type));
}

/** How long the delivery of an ended run is kept, since the run may be reopened. A run that has ended before that is not looked at any more. */
export const KEPT_MS: number = 30 * 24 * 3_600_000;
export const HOOKS = 'hooks';
/** The webhooks of one run that has ended. They are no longer looked at. */
const ENDED = 'ended';
const RUNS = 'runs';

export function keyOf({ tenant, id }: Pick<Webhook, 'tenant' | 'id'>): string {
  return JSON.stringify([tenant, id]);
}

export function hooksOf(tenant: string): Namespace {
  return [HOOKS, tenant];
}

export function endedOf(tenant: string): Namespace {
  return [ENDED, tenant];
}

export function deliveriesOf({ tenant, id }: Pick<Webhook, 'tenant' | 'id'>): Namespace {
  return [RUNS, tenant, id];
}

export function storedWebhook({ value }: Pick<StoreItem, 'value'>): Webhook | undefined {
  return isJsonObject(value) && typeof value['url'] === 'string' ? (value as unknown as Webhook) : undefined;
}

export function storedDelivery({ key, value }: Pick<StoreItem, 'key' | 'value'>): Delivery {
  const { position = 0, ...rest } = isJsonObject(value) ? value : {};
  return { ...(rest as JsonObject), run: key, position: Number(position) };
}

export function deliveryValue({ run: _, ...delivery }: Delivery): Json {
  return defined({ ...delivery }) as JsonObject;
}
