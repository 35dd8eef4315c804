/** The API of OpenTelemetry, an optional peer: it is loaded when somebody traces. All copies of it in a process share what is registered. */
import { createRequire } from 'node:module';
import { PilotageError } from '#core';

export type Api = typeof import('@opentelemetry/api');

/** @throws PilotageError `package_missing`. */
export function loadApi(): Api {
  try {
    return createRequire(import.meta.url)('@opentelemetry/api') as Api;
  } catch (cause) {
    const message = 'openTelemetry needs the package @opentelemetry/api: npm install @opentelemetry/api';
    throw new PilotageError('package_missing', message, { data: { package: '@opentelemetry/api' }, cause });
  }
}
