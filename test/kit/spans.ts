/** A program with OpenTelemetry in it, as its users set it up, whose spans and metrics stay in memory. */
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Telemetry } from '#core';
import { type OpenTelemetryOptions, openTelemetry, runIds } from '#telemetry';

export interface Traced {
  readonly telemetry: Telemetry;
  readonly provider: TracerProvider;
  /** By the times of their ends. */
  spans(): readonly ReadableSpan[];
  /** The only span of that name. */
  span(name: string): ReadableSpan;
  /** Names, parents by their names, and errors: `execute_tool book < invoke_agent trip`. */
  tree(): readonly string[];
  /** The points of each metric: its attributes, and a sum or a count. */
  metrics(): Promise<Readonly<Record<string, readonly { readonly attributes: object; readonly value: number }[]>>>;
}

export function traced(
  more: OpenTelemetryOptions & { readonly sampler?: Sampler; readonly ids?: typeof runIds | null } = {},
): Traced {
  const { sampler, ids = runIds, ...options } = more;
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    ...(ids === null ? {} : { idGenerator: ids }),
    ...(sampler === undefined ? {} : { sampler }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  const counted = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: counted, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  return {
    telemetry: openTelemetry({ tracerProvider: provider, meterProvider, ...options }),
    provider,
    spans,
    span: (name) => {
      const [found, ...others] = spans().filter((span) => span.name === name);
      if (found === undefined || others.length > 0)
        throw new Error(`${others.length + 1} spans ${name}: ${spans().map((span) => span.name)}`);
      return found;
    },
    tree: () => treeOf(spans()),
    metrics: async () => {
      await reader.forceFlush();
      const all =
        counted
          .getMetrics()
          .at(-1)
          ?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? [];
      return Object.fromEntries(
        all.map(({ descriptor, dataPoints }) => [
          descriptor.name,
          dataPoints.map(({ attributes, value }) => ({
            attributes,
            value: typeof value === 'number' ? value : value.count,
          })),
        ]),
      );
    },
  };
}

function treeOf(spans: readonly ReadableSpan[]): readonly string[] {
  const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]));
  return spans.map(({ name, parentSpanContext, attributes }) => {
    const parent = parentSpanContext && (names.get(parentSpanContext.spanId) ?? 'unknown');
    const error = attributes['error.type'];
    return `${name}${parent === undefined ? '' : ` < ${parent}`}${error === undefined ? '' : ` (${error})`}`;
  });
}

/** As the SDK's registration does, for as long as the test takes. */
export async function withContexts<T>(work: () => Promise<T>): Promise<T> {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  try {
    return await work();
  } finally {
    context.disable();
  }
}

/** The id of the span that is active. */
export const activeSpan = (): string | undefined => trace.getSpanContext(context.active())?.spanId;
