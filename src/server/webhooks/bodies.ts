/** The bodies in which events are posted, in the form of standard-webhooks or of A2A. */
import { asJson, type RunEvent } from '#core';
import type { Run, Runtime } from '#runtime';
import { legacyNotification } from '../a2a/legacy.ts';
import { notificationOf } from '../a2a/notification.ts';
import { MEDIA_TYPE } from '../a2a/wire.ts';
import type { ErrorText } from '../problem.ts';
import { told } from '../told.ts';
import type { Webhook } from './subscription.ts';

export interface BodySource {
  readonly runtime: Runtime;
  readonly errorText: ErrorText;
}

export interface Body {
  readonly type: string;
  readonly body: string;
}

/** @returns `undefined` when the event is not posted in this form. */
export async function postedBody(
  source: BodySource,
  hook: Webhook,
  run: Run,
  event: RunEvent,
): Promise<Body | undefined> {
  if (hook.format !== 'events') {
    const notification = await notificationOf(source, run, event);
    if (notification === undefined) return undefined;
    if (hook.format === 'a2a') return { type: MEDIA_TYPE, body: JSON.stringify(notification) };
    return { type: 'application/json', body: JSON.stringify(legacyNotification(notification)) };
  }
  const { type, identity, seq, occurredAt, ...payload } = event;
  const data = { ...identity, seq, event: told(asJson({ type, ...payload }), source.errorText) };
  const body = JSON.stringify({ type, timestamp: new Date(occurredAt).toISOString(), data });
  return { type: 'application/json', body };
}
