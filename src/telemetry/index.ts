/** Runs as traces and metrics of OpenTelemetry. The package `@opentelemetry/api` has to be there. */
export type { RunTrace, SpanPlace, Telemetry, TracedAbout, TracedPart, TracedRun } from '#core';
export { withTraceparent } from '#core';
export { type OpenTelemetryOptions, openTelemetry } from './open-telemetry.ts';
export { type IdGenerator, runIds } from './run-ids.ts';
