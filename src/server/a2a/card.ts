/** The agent card, by which other agents find this one. */
import { defined } from '#core';
import { type AgentCard, LEGACY_VERSION, PROTOCOL_VERSION } from './wire.ts';

/** What the server knows itself. */
type Own =
  | 'supportedInterfaces'
  | 'capabilities'
  | 'url'
  | 'preferredTransport'
  | 'protocolVersion'
  | 'supportsAuthenticatedExtendedCard';

/** What the card says, beside what the server knows itself. */
export interface CardOptions extends Partial<Omit<AgentCard, Own>> {
  /** The address of the server as others reach it, such as `https://agents.example.com`. Default: the origin at which the card was requested. */
  readonly url?: string;
}

export interface CardFacts {
  readonly agent: string | undefined;
  readonly path: string;
  readonly pushes: boolean;
  readonly isExtended: boolean;
}

const MODES = ['text/plain', 'application/json'];

/** @param origin of the request. */
export function cardOf({ url, ...card }: CardOptions, facts: CardFacts, origin: string): AgentCard {
  const { agent = 'agent', path, pushes, isExtended } = facts;
  const base = (url ?? origin).replace(/\/+$/, '');
  const name = card.name ?? agent;
  const description =
    card.description ?? `Runs of the agent ${agent}: they can be followed, answered, cancelled and found again.`;
  return {
    ...card,
    name,
    description,
    version: card.version ?? '1.0.0',
    supportedInterfaces: [
      { url: `${base}${path}`, protocolBinding: 'JSONRPC', protocolVersion: PROTOCOL_VERSION },
      { url: `${base}${path}/v1`, protocolBinding: 'HTTP+JSON', protocolVersion: PROTOCOL_VERSION },
      { url: `${base}${path}`, protocolBinding: 'JSONRPC', protocolVersion: LEGACY_VERSION },
    ],
    // Clients of 0.3 find the server by these.
    url: `${base}${path}`,
    preferredTransport: 'JSONRPC',
    protocolVersion: `${LEGACY_VERSION}.0`,
    ...defined({ supportsAuthenticatedExtendedCard: isExtended || undefined }),
    capabilities: {
      streaming: true,
      pushNotifications: pushes,
      ...defined({ extendedAgentCard: isExtended || undefined }),
    },
    defaultInputModes: card.defaultInputModes ?? MODES,
    defaultOutputModes: card.defaultOutputModes ?? MODES,
    skills: card.skills ?? [{ id: agent, name, description, tags: [] }],
  };
}
