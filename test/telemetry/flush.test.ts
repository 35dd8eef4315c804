/** What is traced last is sent before a program ends that closes its runtime, such as the command. */
import { metrics, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, InMemorySpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import { afterEach, describe, expect, it } from 'vitest';
import type { Telemetry } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#pilotage';
import { openTelemetry, runIds, withTraceparent } from '#telemetry';
import { finish, script } from '../kit/decisions.ts';
import { withoutPackage } from '../kit/missing-package.ts';

afterEach(() => {
  trace.disable();
  metrics.disable();
});

async function runOnce(telemetry: Telemetry): Promise<readonly unknown[]> {
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(error);
  const runtime = createRuntime({ planner: script(finish('ok')), journal: memoryJournal(), telemetry, onFault });
  await (await runtime.start('go')).result();
  await runtime.close();
  return faults;
}

describe('a runtime that is closed sends what was not sent', () => {
  it.each(['given', 'registered'])('by the providers that are %s', async (how) => {
    const exporter = new InMemorySpanExporter();
    const tracerProvider = new TracerProvider({
      idGenerator: runIds,
      spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: 3_600_000 })],
    });
    const counted = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter: counted, exportIntervalMillis: 3_600_000 });
    const meterProvider = new MeterProvider({ readers: [reader] });
    if (how === 'registered') {
      trace.setGlobalTracerProvider(tracerProvider);
      metrics.setGlobalMeterProvider(meterProvider);
    }
    const telemetry = openTelemetry(how === 'given' ? { tracerProvider, meterProvider } : {});
    expect(await runOnce(telemetry)).toEqual([]);
    expect(exporter.getFinishedSpans()).toHaveLength(2);
    expect(counted.getMetrics()).toHaveLength(1);
    await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]);
  });

  it('and has nothing to say in a program without an SDK, whoever has started the run', async () => {
    for (const parent of [undefined, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'])
      expect(await withTraceparent(parent, () => runOnce(openTelemetry()))).toEqual([]);
  });

  it('and says it when that fails', async () => {
    const flush = () => Promise.reject(new Error('The collector is away.'));
    const faults = await runOnce({ ...openTelemetry(), flush });
    expect(faults.map(String)).toEqual(['Error: The collector is away.']);
  });
});

it('openTelemetry names the package that it needs, where that is not installed', () => {
  const refused = withoutPackage('@opentelemetry/api', () => {
    try {
      return openTelemetry();
    } catch (error) {
      return error;
    }
  });
  expect(refused).toMatchObject({ code: 'package_missing', data: { package: '@opentelemetry/api' } });
  expect(refused).toHaveProperty('message', expect.stringContaining('npm install @opentelemetry/api'));
});
