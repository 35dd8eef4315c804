/** A request of A2A, over either binding. */
import type { JsonObject } from '#core';
import type { Visit } from '../visit.ts';
import type { CardOptions } from './card.ts';
import type { PushConfigs } from './push.ts';
import type { A2aSender } from './send.ts';
import type { A2aVersion, AgentCard } from './wire.ts';

export interface OperationDeps {
  readonly agent: string | undefined;
  readonly push: PushConfigs | undefined;
  readonly extended: ((visit: Visit) => CardOptions | Promise<CardOptions>) | undefined;
  readonly card: (options?: CardOptions) => AgentCard;
}

/** A request: its visitor and its parameters. */
export interface A2aAsked extends A2aSender {
  readonly version: A2aVersion;
  readonly deps: OperationDeps;
  readonly params: JsonObject;
}
