/** What a call of a tool of `createMCPClient` (`@ai-sdk/mcp`) comes to, by what its server has said, or has not. */
import { describeThrown, fieldOf } from '#core';
import { OutcomeUnknown, ToolFailure } from './tool.ts';

/** Tools that `createMCPClient` of `@ai-sdk/mcp` gives say of which client they are. */
export function isOfMcp(tool: object): boolean {
  const metadata = fieldOf(tool, 'metadata');
  return typeof fieldOf(metadata, 'clientName') === 'string' && typeof fieldOf(metadata, 'toolName') === 'string';
}

/** What a server of MCP says of its failure (`isError`) is the value of its tools, but fits no schema of their values. */
export async function ofServer(made: unknown, signal: AbortSignal, hasSchema: boolean): Promise<unknown> {
  const value = await unlessUnanswered(made, signal);
  const content = fieldOf(value, 'content');
  if (!hasSchema || fieldOf(value, 'isError') !== true || !Array.isArray(content)) return value;
  const words = content.flatMap((item) => (fieldOf(item, 'type') === 'text' ? [String(fieldOf(item, 'text'))] : []));
  throw new ToolFailure(words.join('\n') || 'The server says that the call has failed.');
}

/** A client of MCP fails in the same way when the server refuses and when its answer is lost: then the call may have happened. */
async function unlessUnanswered(made: unknown, signal: AbortSignal): Promise<unknown> {
  try {
    return await made;
  } catch (error) {
    if (signal.aborted || !isUnanswered(error)) throw error;
    throw new OutcomeUnknown(describeThrown(error), { cause: error });
  }
}

const MCP_ERROR = Symbol.for('vercel.ai.error.AI_MCPClientError');
/** How the client says that it has sent nothing, for which it has no code. */
const NOTHING_SENT = /closed client|not connected|does not support/i;
const NO_CONNECTION: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);

/** Neither the server has answered (its errors have a code, or a status that no gateway gives), nor is it sure that it was not asked. */
function isUnanswered(error: unknown): boolean {
  if (fieldOf(error, MCP_ERROR) !== true) {
    return error instanceof TypeError && !NO_CONNECTION.has(fieldOf(error.cause, 'code'));
  }
  const isAnswered = fieldOf(error, 'code') !== undefined || Number(fieldOf(error, 'statusCode')) < 500;
  return !isAnswered && !NOTHING_SENT.test(describeThrown(error));
}
