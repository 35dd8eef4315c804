/** Calls of OpenAI's computer, and screenshots in the form of their results. */
import type { JsonObject } from '#core';
import { base64, png } from '../pictures.ts';

export interface Screenshot {
  readonly output: JsonObject;
  readonly acknowledgedSafetyChecks?: readonly JsonObject[];
}

export function computerCall(number: number): JsonObject {
  return {
    ...{ type: 'computer_call', id: `cu_${number}`, call_id: `call_${number}`, status: 'completed' },
    ...{ actions: [{ type: 'click', x: 1, y: 2, button: 'left' }], pending_safety_checks: [] },
  };
}

export function screenshot(bytes: Uint8Array): Screenshot {
  return { output: { type: 'computer_screenshot', imageUrl: `data:image/png;base64,${base64(bytes)}` } };
}

/** As a real one is, more than 32 KiB. */
export function largeShot(number: number): Screenshot {
  return screenshot(Buffer.concat([png(number), Buffer.alloc(100_000, number)]));
}
