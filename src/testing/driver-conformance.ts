/**
 * What every driver must do, as plain async functions for any test runner:
 *
 *     for (const check of driverConformance({ open: () => myEngine() })) it(check.name, check.run);
 */
import { assertOptions, type OptionShape } from '#core';
import { driverCases } from './driver-cases/cases.ts';
import { DriverBench, type DriverCase, type DriverEngine } from './driver-cases/kit.ts';
import type { ConformanceCase } from './journal-conformance.ts';

export interface DriverConformanceOptions {
  /**
   * An engine that knows no runs, for each case one or two. It gives the drivers of several processes. Time is the real one, and some cases wait for
   * some seconds.
   */
  open(): DriverEngine | Promise<DriverEngine>;
  /** How long a case may take, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
}

const OPTIONS: OptionShape<DriverConformanceOptions> = { open: 'function', timeoutMs: 'count?' };
const TIMEOUT_MS = 30_000;

export function driverConformance(options: DriverConformanceOptions): ConformanceCase[] {
  assertOptions('driverConformance', options, OPTIONS);
  return driverCases.map((check) => ({ name: check.name, run: () => runCase(check, options) }));
}

async function runCase(check: DriverCase, { open, timeoutMs = TIMEOUT_MS }: DriverConformanceOptions): Promise<void> {
  const bench = new DriverBench(async () => open());
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${check.name}: not over after ${timeoutMs / 1_000} s`)), timeoutMs);
  });
  try {
    await Promise.race([check.run(bench), late]);
  } finally {
    clearTimeout(timer);
    await bench.close();
  }
}
