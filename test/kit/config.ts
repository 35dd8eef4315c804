/** Configurations as somebody writes them who has no types. */
import type { PilotageError } from '#pilotage';
import { type ReadyConfig, type ReadyOptions, readyConfig } from '#pilotage/config';

/** A configuration whose types nobody has looked at. */
export function ready(config: unknown, options?: ReadyOptions): Promise<ReadyConfig> {
  return readyConfig(config as Parameters<typeof readyConfig>[0], options);
}

/** Why it is not taken. */
export async function refusalOf(config: unknown, options?: ReadyOptions): Promise<PilotageError> {
  try {
    await ready(config, options);
  } catch (error) {
    return error as PilotageError;
  }
  throw new Error('The configuration was taken.');
}
