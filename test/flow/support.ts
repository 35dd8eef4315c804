/** Flows in a runtime on a real SQLite file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import type { Planner } from '../../src/core/planner.ts';
import type { FlowError } from '../../src/flow/error.ts';
import { createRuntime, type Runtime, type RuntimeOptions } from '../../src/runtime/runtime.ts';
import type { AnyTool, EquippedPlanner } from '../../src/tools/tool.ts';

const open: Runtime[] = [];
const folders: string[] = [];

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** The path of a journal that nobody has written yet. */
export function journalPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-flow-'));
  folders.push(folder);
  return join(folder, 'runs.db');
}

const idle: Planner = { name: 'idle', next: () => ({ kind: 'finish', reason: 'goal' }) };

export interface PlacedOptions extends Partial<RuntimeOptions> {
  readonly tools?: readonly AnyTool[];
}

/** A runtime that knows these flows. It is closed after the test. */
export function placed(flows: readonly EquippedPlanner[], options: PlacedOptions = {}): Runtime {
  const runtime = createRuntime({ planner: idle, planners: flows, journal: journalPath(), ...options });
  open.push(runtime);
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
