/** Steering messages. Each is stored in the run's inbox before it is acknowledged, and applied at a step boundary. */
import { assertPayloadBounds } from './bounds.ts';
import { PilotageError } from './errors.ts';
import { captureObject, type JsonObject } from './json.ts';

export const CONTROL_TYPES = [
  'INJECT_CONTEXT',
  'REDIRECT',
  'CANCEL',
  'PRIORITIZE',
  'PAUSE',
  'RESUME',
  'APPROVE',
  'REJECT',
  'USER_MESSAGE',
] as const;
export type ControlType = (typeof CONTROL_TYPES)[number];

export interface Control {
  /** Unique in its run: the same id twice is one control. */
  readonly id: string;
  readonly type: ControlType;
  readonly payload?: JsonObject;
}

/** An inbox holds at most this many controls that nobody has taken yet. */
export const INBOX_CAP = 256;

/** @throws PilotageError `unknown_control_type`, `unserializable` or `payload_invalid`. */
export function validateControl(control: Control): Control {
  if (!CONTROL_TYPES.includes(control.type)) {
    throw new PilotageError(
      'unknown_control_type',
      `${JSON.stringify(control.type)} is no control. Use one of ${CONTROL_TYPES.join(', ')}.`,
    );
  }
  if (control.payload === undefined) return Object.freeze({ id: control.id, type: control.type });
  const payload = captureObject(control.payload, 'payload').json;
  assertPayloadBounds(payload, 'payload');
  return Object.freeze({ id: control.id, type: control.type, payload });
}
