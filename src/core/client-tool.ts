/** Tools that whoever started a run carries out itself, as they stand in the first entry of the run. */
import type { JsonObject } from './json.ts';
import type { Effect } from './tool.ts';

/** A tool of one run's client, such as a page: the call waits until somebody says what it came to. */
export interface ClientToolSpec {
  /** At most 128 characters. It must not be that of a tool which the agent has. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonObject;
  /** JSON Schema of the value: an answer that does not fit is refused. */
  readonly outputSchema?: JsonObject;
  /** Default `once`. */
  readonly effect?: Effect;
  /** Milliseconds until the call is waited for no more. Default: as long as the run. */
  readonly timeoutMs?: number;
}
