/** Flows in a runtime on a real SQLite file. */
import { onTestFinished } from 'vitest';
import type { Planner } from '#core';
import type { FlowError } from '#flow';
import { createRuntime, type Runtime, type RuntimeOptions } from '#runtime';
import type { Agent, AnyTool } from '#tools';
import { temporaryFile } from './files.ts';

const idle: Planner = { name: 'idle', next: () => ({ kind: 'finish', reason: 'goal' }) };

export interface PlacedOptions extends Partial<RuntimeOptions> {
  readonly tools?: readonly AnyTool[];
}

/** A runtime that knows these flows. It is closed after the test. */
export function placed(flows: readonly Agent[], options: PlacedOptions = {}): Runtime {
  const runtime = createRuntime({ planner: idle, agents: flows, journal: temporaryFile(), ...options });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** The error with which the promise rejects. */
export async function failureOf(promise: Promise<unknown>): Promise<FlowError> {
  return promise.then(
    (value) => {
      throw new Error(`It did not fail, but gave ${JSON.stringify(value)}.`);
    },
    (error: FlowError) => error,
  );
}
