/** Which keys a tool may have: those of Pilotage, and those of the tools that the AI SDK and MCP make. A key that would be passed over may be a gate. */
import { assertKnownKeys, isOptionsRecord, type OptionShape, PilotageError } from '#core';
import type { AgentTool } from './agent.ts';
import type { ApprovalGate, Backoff, Tool } from './tool.ts';
import { OWN_OPTIONS } from './unnamed-tool.ts';

const TOOL: OptionShape<Partial<Tool & AgentTool>> = {
  ...({ name: 'any?', description: 'any?', inputSchema: 'any?', outputSchema: 'any?', execute: 'any?' } as const),
  ...({ toModelOutput: 'any?' } as const),
  ...({ needsApproval: 'any?', agent: 'any?', prompt: 'any?' } as const),
  ...OWN_OPTIONS,
};
const TOOL_KEYS = Object.keys(TOOL);
const GATE: OptionShape<ApprovalGate> = {
  ...({ when: 'any?', reason: 'any?', approver: 'any?', onReject: 'any?', expiresInMs: 'any?' } as const),
  ...({ approvals: 'any?', remindAfterMs: 'any?', escalate: 'any?' } as const),
};
const BACKOFF: OptionShape<Backoff> = { baseMs: 'any?', multiplier: 'any?', maxMs: 'any?' };

/** What tools of MCP and of the AI SDK say about themselves to people. Hints of a server promise nothing: the program says the effect. */
const ABOUT = ['title', 'annotations', 'icons', 'execution', '_meta', 'metadata', 'providerMetadata'];

/**
 * Other keys that an AI SDK tool may have. `strict` needs nothing: whatever a model sends, `execute` gets only arguments that fit the
 * schema.
 */
const AI_SDK = ['type', 'strict', 'contextSchema', 'context', 'inputExamples', 'deferLoading'];
/** What tools of a provider have beside them. Results that come in a later reply are taken as they come, whatever a tool promises. */
const OF_PROVIDER = ['id', 'args', 'isProviderExecuted', 'supportsDeferredResults'];

const INPUT_EVENTS = 'the events of the run tell of its calls (run.events()), so leave it out';
/** Keys of AI SDK tools that are not carried out, and what to do in place of them. */
const NOT_CARRIED_OUT: Readonly<Record<string, string>> = {
  onInputStart: INPUT_EVENTS,
  onInputDelta: INPUT_EVENTS,
  onInputAvailable: INPUT_EVENTS,
};

/** @throws PilotageError `invalid_config` naming a key that no tool has, in the tool, its gate or its backoff. */
export function assertToolKeys(owner: string, tool: object): void {
  assertKnownKeys(owner, tool, TOOL_KEYS, ABOUT);
  assertParts(owner, tool);
}

/** As `assertToolKeys`, for a tool of a record. @throws also for what an AI SDK tool has and Pilotage does not carry out. */
export function assertUnnamedKeys(owner: string, tool: object): void {
  const given = tool as Readonly<Record<string, unknown>>;
  const { type } = given;
  const isOfProvider = type === 'provider';
  if (type !== undefined && type !== 'function' && type !== 'dynamic' && !isOfProvider) {
    const wanted = 'give a tool with description, inputSchema and execute, or one of a provider (type provider)';
    throw new PilotageError('invalid_config', `${owner} has the type ${JSON.stringify(type)}; ${wanted}.`);
  }
  const beside = [...ABOUT, ...AI_SDK, ...(isOfProvider ? OF_PROVIDER : []), ...Object.keys(NOT_CARRIED_OUT)];
  assertKnownKeys(owner, tool, TOOL_KEYS, beside);
  for (const [key, instead] of Object.entries(NOT_CARRIED_OUT)) {
    if (isNothing(given[key])) continue;
    throw new PilotageError('invalid_config', `${owner} has ${key}, which is not carried out here: ${instead}.`);
  }
  assertParts(owner, tool);
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === false || (isOptionsRecord(value) && Object.keys(value).length === 0);
}

function assertParts(owner: string, { needsApproval, backoff }: Partial<Record<keyof Tool, unknown>>): void {
  if (isOptionsRecord(needsApproval))
    assertKnownKeys(`needsApproval of ${named(owner)}`, needsApproval, Object.keys(GATE));
  if (isOptionsRecord(backoff)) assertKnownKeys(`backoff of ${named(owner)}`, backoff, Object.keys(BACKOFF));
}

/** In the middle of a sentence. */
function named(owner: string): string {
  return owner.replace(/^The /, 'the ');
}
