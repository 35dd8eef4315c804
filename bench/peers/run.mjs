/** `node bench/peers/run.mjs [--json] [--only <file>] [--write]`: every peer in a child process of its own, one table. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { machine } from '../machine.ts';
import { writeResults } from '../results.ts';
import { table } from '../table.ts';
import { SIZES } from '../workload.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const IN_MEMORY = ['pilotage', 'pi', 'ai-sdk', 'openai-agents', 'langchain', 'mastra'];
const DURABLE = ['durable-pilotage', 'durable-langgraph'];
const TIMEOUT_MS = 900_000;

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

main();

function main() {
  const chosen = [...IN_MEMORY, ...DURABLE].filter((name) => values.only === undefined || values.only === name);
  if (chosen.length === 0) {
    console.error(`There is no peer ${values.only}. Use one of ${[...IN_MEMORY, ...DURABLE].join(', ')}.`);
    process.exitCode = 2;
    return;
  }
  const installError = install();
  const results = chosen.map((name) => measure(name, installError));
  const durable = results.filter(({ name }) => DURABLE.includes(name));
  const inMemory = results.filter(({ name }) => IN_MEMORY.includes(name));
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

function measure(name, installError) {
  if (installError !== undefined && !name.includes('pilotage')) return { name, peer: name, error: installError };
  console.error(`measuring ${name} …`);
  const child = spawnSync(process.execPath, [`${HERE}${name}.mjs`], {
    cwd: HERE,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    env: { ...process.env, LANGSMITH_TRACING: 'false', MASTRA_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1' },
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
