/** A limit of cost holds only where everything that costs something has a price. */
import { PilotageError, type Planner, type Usage } from '#core';
import { type Agent, agentsOf, type ToolSet } from '#tools';

/** Models without prices that a run of this planner may ask, also through agents that carry out its tools. */
export function unpricedOf(planner: Planner, tools: ToolSet): readonly string[] {
  // By their tools: two agents may have one planner, and each its own tools with agents behind them.
  const seen = new Set<Agent | ToolSet>([tools]);
  const names = new Set(planner.unpriced ?? []);
  const open: Agent[] = [...agentsOf(tools)];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const name of next.planner.unpriced ?? []) names.add(name);
    const { tools: own } = next;
    if (seen.has(next) || seen.has(own)) continue;
    seen.add(next).add(own);
    open.push(...agentsOf(own));
  }
  return [...names];
}

/** @throws PilotageError `price_missing` for a limit of cost, where one of these models may be asked. */
export function assertPriced(agent: string, unpriced: readonly string[], hasCostLimit: boolean): void {
  if (hasCostLimit && unpriced.length > 0) throw priceMissing(agent, unpriced);
}

export function priceMissing(agent: string, models: readonly string[]): PilotageError {
  const names = models.map((name) => JSON.stringify(name)).join(', ');
  const message = `The run has a limit on cost, but the agent ${agent} uses ${models.length === 1 ? 'a model' : 'models'} without prices: ${names}. Give prices beside each model, { model, prices: { input: 2.5, output: 10 } } in US dollars for a million tokens (0 for one that is free), or limit tokens in place of costUsd.`;
  return new PilotageError('price_missing', message, { data: { agent, models: [...models] } });
}

/** What was used without saying what it costs, of a run whose cost is limited. */
export function uncounted(
  agent: string,
  usage: Usage | undefined,
  limit: number | undefined,
): PilotageError | undefined {
  if (limit === undefined || usage === undefined || usage.costMicroUsd !== undefined) return undefined;
  const { inputTokens = 0, outputTokens = 0 } = usage;
  if (inputTokens + outputTokens === 0) return undefined;
  const message = `The run has a limit on cost, but the agent ${agent} has used ${inputTokens + outputTokens} tokens without saying what they cost. Give costMicroUsd with the usage of its moves, or limit tokens in place of costUsd.`;
  return new PilotageError('price_missing', message, { data: { agent } });
}
