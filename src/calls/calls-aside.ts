/**
 * The calls with an effect that turns on other branches of the conversation have made. What they did is done: an equal call is made
 * again only when a person says so.
 */
import type { Continued, Effect, Json } from '#core';
import type { ArtifactStore, Journal } from '#journal';
import { foldEntries, type RunState } from '#state';
import { EarlierCalls, type KnownTool } from './earlier-calls.ts';

export interface AsidePorts {
  readonly state: Pick<RunState, 'continues'>;
  readonly journal: Pick<Journal, 'read'>;
  readonly artifacts: ArtifactStore;
  toolOf(tool: string): KnownTool | undefined;
}

export class CallsAside {
  readonly #ports: AsidePorts;
  #runs: Promise<readonly (readonly [run: string, calls: EarlierCalls])[]> | undefined;

  constructor(ports: AsidePorts) {
    this.#ports = ports;
  }

  /** Whether there are such turns, and the tool has an effect. */
  concerns(effect: Effect): boolean {
    return this.#aside.length > 0 && (effect === 'once' || effect === 'keyed');
  }

  /** The run that has made an equal call, the last of them. */
  async find(tool: string, args: Json): Promise<string | undefined> {
    this.#runs ??= this.#read();
    for (const [run, calls] of (await this.#runs).toReversed()) {
      if ((await calls.find(tool, args)) !== undefined) return run;
    }
    return undefined;
  }

  get #aside(): Continued['runs'] {
    return this.#ports.state.continues?.aside ?? NONE;
  }

  async #read(): Promise<readonly (readonly [string, EarlierCalls])[]> {
    const { journal, artifacts, toolOf } = this.#ports;
    return Promise.all(
      this.#aside.map(async ({ run, head }) => {
        const state = foldEntries(await journal.read(run, 1, head));
        return [run, new EarlierCalls({ state, artifacts, toolOf })] as const;
      }),
    );
  }
}

const NONE: Continued['runs'] = [];
