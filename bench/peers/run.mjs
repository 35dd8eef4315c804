/**
 * `npm run bench:peers [-- --json] [--only <file>] [--write]`: every peer beside the bare loop. Each side has a process of its own, and they
 * take turns, as in `bench/step-cpu.ts`: neither pays for the other's garbage, and no collection is forced.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { machine } from '../machine.ts';
import { median, short } from '../measure.ts';
import { writeResults } from '../results.ts';
import { sample, startSide } from '../sides.ts';
import { table } from '../table.ts';
import { SIZES } from '../workload.ts';
import { versionOf } from './version.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** By file: what the table calls the peer, and its npm package. */
const IN_MEMORY = {
  pilotage: ['Pilotage', undefined],
  pi: ['pi agent loop', '@earendil-works/pi-agent-core'],
  'ai-sdk': ['AI SDK generateText', 'ai'],
  'openai-agents': ['OpenAI Agents', '@openai/agents'],
  langchain: ['LangChain on LangGraph', '@langchain/langgraph'],
  mastra: ['Mastra', '@mastra/core'],
};
const DURABLE = ['durable-pilotage', 'durable-langgraph'];
const TIMEOUT_MS = 900_000;
const FLOOR = fileURLToPath(new URL('../step-cpu-child.ts', import.meta.url));
const MAX_PAIRS = 11;
/** For the pairs of one size: a slow peer gets fewer of them, and at least one. */
const CAP_MS = 20_000;

Object.assign(process.env, { LANGSMITH_TRACING: 'false', MASTRA_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' });

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

await main();

async function main() {
  const chosen = [...Object.keys(IN_MEMORY), ...DURABLE].filter(
    (name) => values.only === undefined || values.only === name,
  );
  if (chosen.length === 0) {
    console.error(`There is no peer ${values.only}. Use one of ${[...Object.keys(IN_MEMORY), ...DURABLE].join(', ')}.`);
    process.exitCode = 2;
    return;
  }
  const installError = install();
  const results = [];
  for (const name of chosen) {
    console.error(`measuring ${name} …`);
    if (installError !== undefined && !name.includes('pilotage'))
      results.push({ name, peer: name, error: installError });
    else results.push(name in IN_MEMORY ? await measureStep(name) : measureDurable(name));
  }
  const durable = results.filter(({ name }) => DURABLE.includes(name));
  const inMemory = results.filter(({ name }) => name in IN_MEMORY);
  const text = [machine(), ...(inMemory.length > 0 ? [memoryTable(inMemory)] : [])];
  if (durable.length > 0) text.push(durableTable(durable));
  console.log(values.json ? JSON.stringify(results) : text.join('\n\n'));
  if (values.write) writeResults('peers', text.join('\n\n'));
}

/** @returns why the peers are not installed, if they are not. The lock file pins all of them; their scripts do not run. */
function install() {
  if (existsSync(`${HERE}node_modules/.package-lock.json`)) return undefined;
  console.error('installing the peers …');
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status, stderr } = spawnSync('npm', args, { cwd: HERE, encoding: 'utf8' });
  return status === 0 ? undefined : `not installed: ${lastLine(stderr, /npm error (?!A complete log)/)}`;
}

async function measureStep(name) {
  const [peer, packageName] = IN_MEMORY[name];
  const [us, ratio, pairs] = [{}, {}, {}];
  try {
    for (const steps of SIZES) {
      const measured = await measureSize(name, steps);
      us[steps] = short(measured.us / steps);
      ratio[steps] = short(measured.ratio);
      pairs[steps] = measured.pairs;
    }
  } catch (error) {
    return { name, peer, error: error.message };
  }
  return { name, peer, version: versionOf(packageName), us, ratio, pairs };
}

async function measureSize(name, steps) {
  const floor = await startSide(FLOOR, ['floor', String(steps)]);
  const peer = await startSide(`${HERE}${name}.mjs`, [String(steps)]);
  const uses = [];
  const ratios = [];
  const begin = performance.now();
  try {
    while (ratios.length === 0 || (ratios.length < MAX_PAIRS && performance.now() - begin < CAP_MS)) {
      const floorUs = await sample(floor);
      uses.push(await sample(peer));
      ratios.push(uses.at(-1) / floorUs);
    }
  } finally {
    floor.kill();
    peer.kill();
  }
  return { us: median(uses), ratio: median(ratios), pairs: ratios.length };
}

function measureDurable(name) {
  const child = spawnSync(process.execPath, [`${HERE}${name}.mjs`], {
    cwd: HERE,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  });
  if (child.status === 0) return { name, ...JSON.parse(child.stdout.trim().split('\n').at(-1)) };
  const error = child.error?.message ?? lastLine(child.stderr, /Error/);
  return { name, peer: name, error };
}

/** The last line that `matches`: of a stack trace, the one that says what was wrong. */
function lastLine(text, matches) {
  const lines = text.split('\n').filter((line) => matches.test(line) && !line.trimStart().startsWith('at '));
  return lines.at(-1)?.trim().replaceAll(HERE, '') ?? 'no message';
}

function memoryTable(results) {
  const head = [
    'CPU a step, in memory',
    'version',
    ...SIZES.map((steps) => `us, N=${steps}`),
    ...SIZES.map((steps) => `x floor, N=${steps}`),
    'pairs',
  ];
  const rows = results.map(({ peer, version, us, ratio, pairs, error }) =>
    error === undefined
      ? [peer, version, ...SIZES.map((n) => String(us[n])), ...SIZES.map((n) => String(ratio[n])), pairsText(pairs)]
      : [peer, ...Array(7).fill(''), error],
  );
  return table('llrrrrrrl', [head, ...rows]);
}

function pairsText(pairs) {
  return SIZES.map((steps) => pairs[steps]).join('/');
}

function durableTable(results) {
  const head = ['durable, one run at a time', 'version', 'steps/s, N=10', 'N=100', 'bytes a step, N=10', 'N=100'];
  const rows = results.map(({ peer, version, stepsPerS, bytesPerStep, error }) =>
    error === undefined
      ? [peer, version, ...[stepsPerS, bytesPerStep].flatMap((of) => [String(of[10]), String(of[100])])]
      : [peer, ...Array(5).fill(''), error],
  );
  return table('llrrrrl', [head, ...rows]);
}
