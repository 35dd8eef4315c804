/** What is traced last is sent before a program ends that closes its runtime, such as the command. */
import { spawnSync } from 'node:child_process';
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
import { withoutPackageFlags } from '../kit/missing-package.ts';
import { projectDir } from '../kit/project.ts';

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
  const program =
    "import { openTelemetry } from '#telemetry'; try { openTelemetry(); } catch (error) { console.log(error.code, error.message); }";
  const env = { ...process.env, NODE_OPTIONS: withoutPackageFlags('@opentelemetry/api') };
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: projectDir,
    env,
    encoding: 'utf8',
  });
  expect(stdout).toContain('package_missing');
  expect(stdout).toContain('npm install @opentelemetry/api');
});
