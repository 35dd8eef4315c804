/** What is counted of runs, by the semantic conventions of OpenTelemetry for generative AI. No id of a run is among the attributes. */
import type { Attributes, Histogram, Meter } from '@opentelemetry/api';
import type { Usage } from '#core';
import type { SpanFacts } from './spans.ts';

/** The bounds that the conventions give, in seconds. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

const OF_MODEL = [
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.model',
] as const;

export class RunMetrics {
  readonly #run: Histogram;
  readonly #model: Histogram;
  readonly #tool: Histogram;
  readonly #tokens: Readonly<Record<'inputTokens' | 'outputTokens', ReturnType<Meter['createCounter']>>>;

  constructor(meter: Meter) {
    const duration = (name: string, description: string): Histogram =>
      meter.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: SECONDS } });
    const tokens = (name: string, description: string) => meter.createCounter(name, { description, unit: '{token}' });
    this.#run = duration('gen_ai.invoke_agent.duration', 'From the start of a run to its end.');
    this.#model = duration('gen_ai.client.inference.duration', 'A request to a model, with its tries.');
    this.#tool = duration('gen_ai.execute_tool.duration', 'A call of a tool, without the time for which it waits.');
    this.#tokens = {
      inputTokens: tokens('gen_ai.client.inference.usage.input_tokens', 'Tokens of requests to models.'),
      outputTokens: tokens('gen_ai.client.inference.usage.output_tokens', 'Tokens of replies of models.'),
    };
  }

  run(facts: SpanFacts): void {
    this.#run.record(seconds(facts), picked(facts, ['gen_ai.agent.name']));
  }

  move(facts: SpanFacts, usage: Usage = {}): void {
    if (facts.isOfModel !== true) return;
    const attributes = picked(facts, OF_MODEL);
    this.#model.record(seconds(facts), attributes);
    for (const part of ['inputTokens', 'outputTokens'] as const) {
      const count = usage[part];
      if (count !== undefined) this.#tokens[part].add(count, attributes);
    }
  }

  /** The call was made. */
  call(facts: SpanFacts): void {
    this.#tool.record(seconds(facts), picked(facts, ['gen_ai.tool.name']));
  }
}

function seconds({ startedAt, endedAt }: SpanFacts): number {
  return Math.max(0, endedAt - startedAt) / 1_000;
}

function picked({ attributes, errorType }: SpanFacts, names: readonly string[]): Attributes {
  const own = Object.fromEntries(names.map((name) => [name, attributes[name]]));
  return errorType === undefined ? own : { ...own, 'error.type': errorType };
}
