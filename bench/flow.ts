/** A flow of 20 nodes: what a node costs over a bare promise chain, and beside LangGraph on the same graph. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Measured, type Row, short } from './measure.ts';

interface Sides {
  readonly version: string;
  readonly floorUs: number;
  readonly nodeUs: number;
  readonly langgraphUs: number;
  readonly langgraphSavedUs: number;
  readonly ratio: number;
  readonly ratioSaved: number;
}

export async function flow(): Promise<Measured> {
  const sides = measureSides();
  const { version, floorUs, nodeUs, langgraphUs, langgraphSavedUs, ratio, ratioSaved } = sides;
  const rows: Row[] = [
    ['CPU a node of a flow of 20, in memory', `${nodeUs} us`, `over a promise chain's ${floorUs} us`],
    [
      `the same on LangGraph ${version}`,
      `${langgraphUs} us`,
      `${ratio} x ours, without a checkpointer (at least 10); ${langgraphSavedUs} us, ${ratioSaved} x, with its MemorySaver`,
    ],
  ];
  return {
    keys: { flow_node_cpu_us: nodeUs, flow_langgraph_ratio: ratio, flow_langgraph_saved_ratio: short(ratioSaved) },
    rows,
  };
}

/** The peers are installed by `node bench/peers/run.mjs`; all sides share one process, which is not this one. */
function measureSides(): Sides {
  const peers = fileURLToPath(new URL('peers/', import.meta.url));
  const install = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: peers,
    encoding: 'utf8',
  });
  if (install.status !== 0) throw new Error(`The peers could not be installed: ${install.stderr}`);
  const env = { ...process.env, LANGSMITH_TRACING: 'false' };
  const child = spawnSync(process.execPath, ['flow-langgraph.mjs'], { cwd: peers, encoding: 'utf8', env });
  if (child.status !== 0) throw new Error(`The flows were not measured: ${child.stderr}`);
  return JSON.parse(child.stdout) as Sides;
}
