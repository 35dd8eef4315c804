/**
 * What tools use beside their calls' own prices: models that they ask, and what they tell. It is counted against the limits of the run when it is told,
 * and stands in the journal before the tool goes on. A model is asked only with room for its request and a reply, and its
 * reply is no longer than what is left.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import {
  assertOptions,
  type CallSpent,
  defined,
  type OptionShape,
  PilotageError,
  readUsage,
  type Usage,
  usedMicroUsd,
} from '#core';
import { estimateTokens, fitted, type ReadyModel, readyModel } from '#model';
import type { RunState } from '#state';
import type { GivenModel, Spent } from '#tools';
import type { InFlightBudget } from './in-flight-budget.ts';
import { type Asked, type Spender, ToolModelRequest } from './model-request.ts';

export interface SpendingPorts {
  readonly state: RunState;
  readonly budget: InFlightBudget;
  /** The model of that name, of the run's agent or of another that the runtime knows. */
  modelNamed(name: string): { readonly name: string; readonly model: object } | undefined;
  write(body: CallSpent): Promise<void> | undefined;
  onFault(error: unknown): void;
}

const SPENT: OptionShape<Spent> = { tokens: 'number?', usd: 'number?' };

export class ToolSpending {
  readonly #ports: SpendingPorts;
  /** Model calls under way for which something is set aside. */
  readonly #taken = new Set<ToolModelRequest>();
  /** Resolved when one of them has ended, if somebody waits for that. */
  #change: PromiseWithResolvers<void> | undefined;

  constructor(ports: SpendingPorts) {
    this.#ports = ports;
  }

  /** @throws PilotageError `invalid_config` for what is not a number from 0 up, or more than anything can have used. */
  async spent(spender: Spender, given: Spent): Promise<void> {
    assertOptions('spent', given, SPENT);
    const { tokens, usd } = given;
    const costMicroUsd = usd === undefined ? undefined : usedMicroUsd(usd);
    // A total does not count what it cannot add, so that an absurd amount would lift the limit that it is counted against.
    const { usage, wrong } = readUsage(defined({ inputTokens: tokens, costMicroUsd }));
    if (wrong !== undefined) throw tooMuchSpent(spender.tool, wrong);
    await this.#record(spender, usage);
  }

  /** The model as a tool asks it. @throws PilotageError `invalid_config` for a value that is not a model, or a name that none has. */
  modelFor(spender: Spender, given: GivenModel): LanguageModelV4 {
    const ready = this.#ready(given);
    const { model } = ready;
    return Object.freeze({
      specificationVersion: 'v4' as const,
      provider: model.provider,
      modelId: model.modelId,
      get supportedUrls() {
        return model.supportedUrls;
      },
      doGenerate: (options: LanguageModelV4CallOptions) =>
        this.#take(spender, ready, options).then((request) => request.generate()),
      doStream: (options: LanguageModelV4CallOptions) =>
        this.#take(spender, ready, options).then((request) => request.stream()),
    });
  }

  #ready(given: GivenModel): ReadyModel {
    if (typeof given !== 'string') return readyModel(given);
    const found = this.#ports.modelNamed(given);
    // A planner lists the models that it has checked.
    if (found !== undefined) return found as ReadyModel;
    throw new PilotageError(
      'invalid_config',
      `No agent of this runtime has a model of the name ${JSON.stringify(given)}. Name one of the models of its planner, or give the model itself.`,
    );
  }

  /** Whoever waits for room looks once more: a request has ended, or the plan of the open step is whole, and what it has used is counted. */
  lookAgain(): void {
    this.#change?.resolve();
    this.#change = undefined;
  }

  /** A planner that is in the middle of a plan was given all that is left for its reply. */
  get #isPlanning(): boolean {
    const { limits, open } = this.#ports.state;
    return open?.move.growing === true && (limits.tokens !== undefined || limits.costMicroUsd !== undefined);
  }

  /** Sets aside what the request and its reply may use. While others are under way, the planner's too, it waits for what they leave. */
  async #take(spender: Spender, ready: ReadyModel, options: LanguageModelV4CallOptions): Promise<ToolModelRequest> {
    if (this.#ports.state.limits.costMicroUsd !== undefined && ready.prices === undefined)
      throw priceMissing(ready, spender);
    for (;;) {
      spender.signal.throwIfAborted();
      if (spender.isOver) throw callIsOver(spender.tool, 'and asks no model');
      const isPlanning = this.#isPlanning;
      const found = this.#roomFor(spender, ready, options);
      if ('amounts' in found && !isPlanning) {
        const request = new ToolModelRequest(found, (ended, usage) => this.#settle(ended, usage));
        this.#taken.add(request);
        this.#ports.budget.take(found.amounts);
        return request;
      }
      if ('lacks' in found && this.#taken.size === 0 && !isPlanning) throw noRoomFor(ready, spender, found.lacks);
      // A stream that nobody reads to its end would be waited for in vain.
      for (const request of this.#taken) request.readAhead();
      this.#change ??= Promise.withResolvers();
      await orAborted(this.#change.promise, spender.signal);
    }
  }

  #roomFor(
    by: Spender,
    ready: ReadyModel,
    options: LanguageModelV4CallOptions,
  ): Asked | { readonly lacks: 'tokens' | 'cost' } {
    const { budget } = this.#ports;
    const [tokens, money] = [budget.room('tokens'), budget.room('costMicroUsd')];
    if (tokens === undefined && money === undefined) {
      const amounts = { tokens: 0, costMicroUsd: 0 };
      return { by, ready, options, amounts, maxOutputTokens: options.maxOutputTokens };
    }
    const sized = { request: options, tokens: estimateTokens(options), model: ready };
    const found = fitted({ tokens, costMicroUsd: money }, sized);
    if ('lacks' in found) return found;
    const { maxOutputTokens, most: amounts } = found;
    return { by, ready, options, amounts, maxOutputTokens };
  }

  /** The attempt has ended: what it left open is counted and closed. */
  over(spender: Spender): void {
    for (const request of this.#taken) if (request.asked.by === spender) request.close();
  }

  async #settle(request: ToolModelRequest, usage?: Usage): Promise<void> {
    const { by, ready, amounts } = request.asked;
    try {
      if (usage !== undefined) await this.#record(by, usage, ready.name);
    } finally {
      this.#taken.delete(request);
      this.#ports.budget.giveUp(amounts);
      this.lookAgain();
    }
  }

  /**
   * Counted from now on, also while it is being written; also when the call has ended, as long as the run goes on.
   * @throws PilotageError `cancelled` when the run has ended, which counts nothing any more.
   */
  async #record({ place, tool, isOver }: Spender, usage: Usage, model?: string): Promise<void> {
    const { state, budget, write, onFault } = this.#ports;
    const hasEnded = (): boolean => state.ending !== null;
    if (hasEnded()) throw callIsOver(tool, RUN_TOO);
    const { inputTokens = 0, outputTokens = 0, costMicroUsd = 0 } = usage;
    const amounts = { tokens: inputTokens + outputTokens, costMicroUsd };
    budget.take(amounts);
    try {
      await write({ kind: 'call_spent', ...place, usage, ...defined({ model }) });
    } catch (error) {
      // It ended while this waited to be written.
      if (hasEnded()) throw callIsOver(tool, RUN_TOO);
      // Nobody listens to a call that was given up.
      if (isOver) onFault(error);
      throw error;
    } finally {
      budget.giveUp(amounts);
    }
  }
}

function tooMuchSpent(tool: string, wrong: string): PilotageError {
  const message = `What ${tool} tells with context.spent is not counted: ${wrong}. Give at most 10^12 tokens and 10^6 US dollars in one call of it.`;
  return new PilotageError('invalid_config', message);
}

/** Whoever keeps a context for longer than its call is told that the call is over. */
export function callIsOver(tool: string, so: string): PilotageError {
  return new PilotageError('cancelled', `The call of ${tool} has ended, ${so}.`);
}

const RUN_TOO = 'and so has its run, which counts nothing any more';
function priceMissing({ name }: ReadyModel, { tool }: Spender): PilotageError {
  const message = `The run has a limit on cost, but ${tool} asks a model without prices: ${JSON.stringify(name)}. Give prices beside it, context.model({ model, prices: { input: 2.5, output: 10 } }) in US dollars for a million tokens (0 for one that is free), or limit tokens in place of costUsd.`;
  return new PilotageError('price_missing', message, { data: { models: [name] } });
}

function noRoomFor({ name }: ReadyModel, { tool }: Spender, axis: 'tokens' | 'cost'): PilotageError {
  const message = `The budget of the run has no room for what ${tool} asks the model ${name}: it was not asked. Raise the limit on ${axis}, or let the tool ask for less.`;
  return new PilotageError('budget_exceeded', message, { data: { axis } });
}

/** Until the promise has resolved, or the signal is aborted; nothing of the wait is left behind. */
async function orAborted(change: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = (): void => resolve();
  signal.addEventListener('abort', stop);
  try {
    await Promise.race([change, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
