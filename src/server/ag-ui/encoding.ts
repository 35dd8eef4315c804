/** How events go out to a client: as server-sent events, or in protobuf, by the encoder of the protocol, an optional peer. */
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { EventStreamOptions, StreamPiece } from '../event-stream.ts';
import type { ServerEnv } from '../part.ts';
import { type AgUiEvent, isFirstVersion, type RunAgentInput } from './protocol.ts';

export interface Encoding extends Pick<EventStreamOptions, 'headers' | 'ofBytes'> {
  readonly encode: (event: AgUiEvent) => StreamPiece;
}

const EVENTS: Encoding = { encode: (event) => ({ data: JSON.stringify(event) }) };
const PROTOBUF = 'application/vnd.ag-ui.event+proto';

/**
 * Protobuf is for clients of 1.0 that name it in `Accept`: before, it had no results of calls, no reasoning and no activities. Everybody else gets
 * server-sent events, also where the encoder is not installed: clients read what `content-type` says.
 */
export async function encodingFor(request: Context<ServerEnv>, input: RunAgentInput): Promise<Encoding> {
  const isNamed = request.req.header('accept')?.toLowerCase().includes(PROTOBUF) === true;
  const wanted = accepts(request, { header: 'Accept', supports: ['text/event-stream', PROTOBUF], default: '' });
  const encoder = isNamed && wanted === PROTOBUF && isFirstVersion(input) ? await load() : undefined;
  if (encoder === undefined) return EVENTS;
  const { EventEncoder } = encoder;
  const made = new EventEncoder({ accept: PROTOBUF });
  return {
    headers: { 'content-type': made.getContentType() },
    ofBytes: true,
    encode: (event) => made.encodeBinary(event as Parameters<typeof made.encodeBinary>[0]),
  };
}

async function load(): Promise<typeof import('@ag-ui/encoder') | undefined> {
  try {
    return await import('@ag-ui/encoder');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
