/** A process with OpenTelemetry that is killed: it starts the run of a file, or goes on with it, and says each span when it is exported. */
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { agent, agentTool, createRuntime } from '#pilotage';
import { openTelemetry, runIds } from '#telemetry';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

const [path = '', id = ''] = process.argv.slice(2);
const say = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`);
const processor = new SimpleSpanProcessor({
  exporter: {
    export: (spans, done) => {
      for (const span of spans) {
        const { traceId, spanId } = span.spanContext();
        const [startedS, endedS] = [span.startTime[0], span.endTime[0]];
        say({ span: span.name, traceId, spanId, parent: span.parentSpanContext?.spanId, startedS, endedS });
      }
      done({ code: 0 });
    },
    shutdown: async () => undefined,
  },
});
const tracerProvider = new TracerProvider({ idGenerator: runIds, spanProcessors: [processor] });
const note = (name: string) => make(name, () => say({ made: name }), { effect: 'read' });
const child = agent({
  name: 'child',
  planner: { name: 'c', next: script(call('inner'), call('inner'), finish('ok')) },
  tools: [note('inner')],
});
const runtime = createRuntime({
  planner: script(call('first'), call('child', { input: 'go' }), call('last'), finish('ok')),
  tools: [note('first'), note('last'), agentTool(child, { description: 'A child.' })],
  journal: sqliteJournal({ path }),
  leaseMs: 500,
  telemetry: openTelemetry({ tracerProvider }),
});
const identity = { ...local('bench'), run: id };
const run = await runtime.start('go', { identity });
const result = await run.result();
say({ status: result.status });
await runtime.close();
