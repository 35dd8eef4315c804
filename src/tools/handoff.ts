/** Tools with which a model hands the conversation over to another agent. */
import { defined, type OptionShape, PilotageError, readOptions, shownAmount } from '#core';
import { type Agent, asCheckedAgent } from './agent.ts';
import type { HandsOver, InputSchema, Tool } from './tool.ts';

export interface HandoffOptions extends Pick<Tool, 'needsApproval' | 'scopes'> {
  /** The name of the tool. Default: `transfer_to_` and the agent's name. */
  readonly name?: string;
  /** When the model is to hand over: the model reads it. */
  readonly description: string;
  /** Default `all`. */
  readonly history?: 'all' | 'none';
  /** `optional` (default): the model may say what the agent is to do; without it, the agent gets the user's words. `required`: it must. */
  readonly input?: 'optional' | 'required';
}

const OPTIONS: OptionShape<HandoffOptions> = {
  ...({
    name: 'any?',
    description: 'any',
    history: 'any?',
    input: 'any?',
    needsApproval: 'any?',
    scopes: 'any?',
  } as const),
};

/**
 * A tool whose call ends the run, and begins one of the other agent in the same commit: with that agent's planner, tools and limits, and what is
 * left of this run's money and tokens. The conversation goes on there, and the next message of the session is for that agent. A task cannot hand over.
 * @param to the agent, or its name where two agents hand over to each other.
 * @throws PilotageError `invalid_config`.
 */
export function handoff(to: Agent | string, options: HandoffOptions): Tool {
  const given = readOptions('handoff', options, OPTIONS);
  const named = typeof to === 'string' ? to : asCheckedAgent(to, 'The agent of handoff').name;
  const {
    name = `transfer_to_${named}`,
    description,
    history = 'all',
    input = 'optional',
    needsApproval,
    scopes,
  } = given;
  if (named === '') throw new PilotageError('invalid_config', 'handoff needs the name of an agent.');
  if (history !== 'all' && history !== 'none') throw other('history', history, "'all' or 'none'");
  if (input !== 'optional' && input !== 'required') throw other('input', input, "'optional' or 'required'");
  const text = { type: 'string', description: 'What the agent is to do, with all that the conversation does not say.' };
  const inputSchema: InputSchema = {
    type: 'object',
    properties: { input: text },
    required: input === 'required' ? ['input'] : [],
    additionalProperties: false,
  };
  return {
    name,
    description,
    inputSchema,
    effect: 'pure',
    execute: (args: unknown) => ({ handed_over_to: named, ...(args as { input?: string }) }),
    handsOver: { to, history },
    ...defined({ needsApproval, scopes }),
  };
}

function other(option: string, given: unknown, wanted: string): PilotageError {
  return new PilotageError(
    'invalid_config',
    `The option ${option} of handoff is ${shownAmount(given)}; give ${wanted}.`,
  );
}

export function successorName({ to }: HandsOver): string {
  return typeof to === 'string' ? to : to.name;
}
