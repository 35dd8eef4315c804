import { expect } from 'vitest';
import { type ErrorCode, PilotageError } from '#core';

interface Thrown {
  readonly message?: string | RegExp;
  readonly data?: unknown;
  readonly cause?: unknown;
}

/** Calls `act`, which must throw a PilotageError of this code. What else is given is compared. */
export function thrownBy(act: () => unknown, code: ErrorCode, { message, ...rest }: Thrown = {}): PilotageError {
  try {
    act();
  } catch (thrown) {
    if (!PilotageError.is(thrown)) throw thrown;
    expect(thrown.code).toBe(code);
    if (message !== undefined) expect(thrown.message).toMatch(message);
    expect(thrown).toMatchObject(rest);
    return thrown;
  }
  throw new Error(`Nothing was thrown, where ${code} was to be.`);
}
