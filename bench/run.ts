/**
 * `node bench/run.ts [--json] [--only <measure>] [--write]`: all measures, one after another. `--dags <file>`: recorded
 * graphs of tasks are replayed instead.
 */
import { parseArgs } from 'node:util';
import { approval } from './approval.ts';
import { cache } from './cache.ts';
import { cluster } from './cluster.ts';
import { concurrent } from './concurrent.ts';
import { dag, replayGraphs } from './dag.ts';
import { disk } from './disk.ts';
import { durable } from './durable.ts';
import { flow } from './flow.ts';
import { flowSoak } from './flow-soak.ts';
import { machine } from './machine.ts';
import type { Measured } from './measure.ts';
import { packageCost } from './package-cost.ts';
import { parallel } from './parallel.ts';
import { parse } from './parse.ts';
import { paused } from './paused.ts';
import { prefix } from './prefix.ts';
import { writeResults } from './results.ts';
import { resume } from './resume.ts';
import { server } from './server.ts';
import { session } from './session.ts';
import { stepCpu } from './step-cpu.ts';
import { table } from './table.ts';
import { tasks } from './tasks.ts';
import { waits } from './waits.ts';

const MEASURES: Readonly<Record<string, () => Promise<Measured>>> = {
  'step-cpu': stepCpu,
  concurrent,
  parallel,
  dag,
  flow,
  'flow-soak': flowSoak,
  durable,
  disk,
  resume,
  paused,
  tasks,
  approval,
  session,
  waits,
  server,
  cluster,
  parse,
  prefix,
  cache,
  package: packageCost,
};

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
    dags: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

await main();

async function main(): Promise<void> {
  if (values.dags !== undefined) {
    console.log(replayGraphs(values.dags));
    return;
  }
  if (values.only !== undefined && !Object.hasOwn(MEASURES, values.only)) {
    console.error(`There is no measure ${values.only}. Use one of ${Object.keys(MEASURES).join(', ')}.`);
    process.exitCode = 2;
    return;
  }
  const measured: Measured[] = [];
  for (const [name, measure] of Object.entries(MEASURES)) {
    if (values.only !== undefined && name !== values.only) continue;
    if (!values.json) console.error(`measuring ${name} …`);
    measured.push(await measure());
  }
  const text = `${machine()}\n\n${table(
    'lrl',
    measured.flatMap(({ rows }) => rows),
  )}`;
  console.log(values.json ? JSON.stringify(Object.assign({}, ...measured.map(({ keys }) => keys))) : text);
  if (values.write) writeResults('bench', text);
}
