/** A flow of 20 nodes: what a node costs over a bare promise chain, and beside LangGraph on the same graph. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { RUN_NODES } from './flow-graph.ts';
import { type Measured, median, short } from './measure.ts';
import { sample, startSide } from './sides.ts';

const ROUNDS = 15;
const PEERS = fileURLToPath(new URL('peers/', import.meta.url));
const KINDS = ['floor', 'ours', 'langgraph', 'langgraph-saved'] as const;

type Samples = Readonly<Record<(typeof KINDS)[number], number[]>>;

export async function flow(): Promise<Measured> {
  installPeers();
  const samples = await sampled();
  /** Microseconds a node over the floor of the same round. */
  const over = (kind: keyof Samples): number[] =>
    samples[kind].map((us, round) => (us - (samples.floor[round] ?? Number.NaN)) / RUN_NODES);
  const ours = over('ours');
  const ratio = (kind: keyof Samples): number =>
    short(median(over(kind).map((us, round) => us / (ours[round] ?? Number.NaN))));
  const us = (kind: keyof Samples): number => short(median(over(kind)));
  const keys = {
    flow_node_cpu_us: us('ours'),
    flow_langgraph_ratio: ratio('langgraph'),
    flow_langgraph_saved_ratio: ratio('langgraph-saved'),
  };
  const floorUs = short(median(samples.floor) / RUN_NODES);
  return {
    keys,
    rows: [
      [
        'CPU a node of a flow of 20 nodes, in memory',
        `${keys.flow_node_cpu_us} us`,
        `over a promise chain's ${floorUs} us`,
      ],
      [
        `the same on LangGraph ${versionOfLangGraph()}, no checkpointer`,
        `${us('langgraph')} us`,
        `${keys.flow_langgraph_ratio} x ours (at least 10)`,
      ],
      ['with its MemorySaver', `${us('langgraph-saved')} us`, `${keys.flow_langgraph_saved_ratio} x ours`],
    ],
  };
}

async function sampled(): Promise<Samples> {
  const samples: Samples = { floor: [], ours: [], langgraph: [], 'langgraph-saved': [] };
  const children = [];
  try {
    for (const kind of KINDS) children.push([kind, await startSide(`${PEERS}flow-side.mjs`, [kind])] as const);
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [kind, child] of children) samples[kind].push(await sample(child));
    }
  } finally {
    for (const [, child] of children) child.kill();
  }
  return samples;
}

/** LangGraph is installed beside the other peers, when it is not there yet. */
function installPeers(): void {
  if (existsSync(`${PEERS}node_modules/.package-lock.json`)) return;
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status, stderr } = spawnSync('npm', args, { cwd: PEERS, encoding: 'utf8' });
  if (status !== 0) throw new Error(`The peers could not be installed: ${stderr}`);
}

function versionOfLangGraph(): string {
  const text = readFileSync(`${PEERS}node_modules/@langchain/langgraph/package.json`, 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
