/** `node bench/parse.ts [--json]`: reading the arguments of calls, while they come and as whole texts. */
import { isDeepStrictEqual } from 'node:util';
import { parseToolArgs } from '#parse';
import { type Measured, median, type Row, short, times, type Work, warmUp } from './measure.ts';
import { KINDS, type Kind, SMALL } from './parse-documents.ts';
import { ALL_PEERS, OURS, peers, type Reader } from './parse-streams.ts';
import { table } from './table.ts';

const HALF_CHARS = 20_000;
const WHOLE_CHARS = 40_000;
const PIECE_CHARS = 20;
const ROUNDS = 15;
const PEER_ROUNDS = 3;
const WARM_UP_MS = 400;
const SAMPLE_MS = 40;

export async function parse(): Promise<Measured> {
  const keys: Record<string, number> = {};
  const rows: Row[] = [];
  const others = peers();
  if (others.length < ALL_PEERS)
    rows.push(['parsers of others', 'not installed', '`node bench/peers/run.mjs` installs them']);
  for (const reader of [OURS, ...others]) {
    const name = reader === OURS ? 'parse_stream_ratio' : `parse_stream_ratio_${reader.key}`;
    for (const kind of KINDS) {
      const { halfMs, wholeMs, ratio } = await streamed(reader, kind);
      keys[name] = Math.max(keys[name] ?? 0, ratio);
      rows.push([
        `stream ${kind.name}, 20 chars a time: ${reader.name}`,
        `${wholeMs} ms`,
        `CPU for 40 KB; 20 KB: ${halfMs} ms, ratio ${ratio}`,
      ]);
    }
  }
  for (const kind of KINDS) {
    const text = kind.write(WHOLE_CHARS);
    const args = await besideJsonParse(text, () => parseToolArgs(text, kind.tool));
    keys['parse_args_speed'] = Math.min(keys['parse_args_speed'] ?? Number.POSITIVE_INFINITY, args.speed);
    rows.push(speedRow(`parseToolArgs, 40 KB, ${kind.name}`, args));
    const stream = await besideJsonParse(text, () => OURS.read([text]));
    rows.push(speedRow(`JsonStream in one piece, 40 KB, ${kind.name}`, stream));
  }
  const small = await besideJsonParse(SMALL.text, () => parseToolArgs(SMALL.text, SMALL.tool));
  keys['parse_args_speed_small'] = small.speed;
  rows.push(speedRow(`parseToolArgs, ${SMALL.text.length} bytes`, small));
  return { keys, rows };
}

interface Streamed {
  readonly halfMs: number;
  readonly wholeMs: number;
  readonly ratio: number;
}

/** CPU of reading 20 KB and 40 KB in turns, and the median of the rounds' ratios. */
async function streamed(reader: Reader, kind: Kind): Promise<Streamed> {
  const half = cut(kind.write(HALF_CHARS));
  const whole = cut(kind.write(WHOLE_CHARS));
  if (!isDeepStrictEqual(await reader.read(half), JSON.parse(half.join(''))))
    throw new Error(`${reader.name} misread.`);
  const isOurs = reader === OURS;
  const runs = isOurs ? await warmUp(() => reader.read(half), WARM_UP_MS, SAMPLE_MS) : 1;
  const halves: number[] = [];
  const wholes: number[] = [];
  for (let round = 0; round < (isOurs ? ROUNDS : PEER_ROUNDS); round += 1) {
    halves.push((await busyUs(() => times(runs, () => reader.read(half)))) / runs / 1000);
    wholes.push((await busyUs(() => times(runs, () => reader.read(whole)))) / runs / 1000);
  }
  const ratio = median(wholes.map((wholeMs, round) => wholeMs / (halves[round] ?? Number.NaN)));
  return { halfMs: short(median(halves)), wholeMs: short(median(wholes)), ratio: short(ratio) };
}

/** CPU of `work` in microseconds. No collection is forced before: it would throw away optimised code. */
async function busyUs(work: Work): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function cut(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / PIECE_CHARS) }, (_, piece) =>
    text.slice(piece * PIECE_CHARS, (piece + 1) * PIECE_CHARS),
  );
}

interface Speed {
  readonly megabytesPerSecond: number;
  /** Times the speed of `JSON.parse`. */
  readonly speed: number;
}

/** In turns with `JSON.parse` of the same text. */
async function besideJsonParse(text: string, read: () => unknown): Promise<Speed> {
  const ours = async (): Promise<void> => repeat(read);
  const floor = async (): Promise<void> => repeat(() => JSON.parse(text));
  const oursRuns = await warmUp(ours, WARM_UP_MS, SAMPLE_MS);
  const floorRuns = await warmUp(floor, WARM_UP_MS, SAMPLE_MS);
  const oursUs: number[] = [];
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const us = (await busyUs(() => times(oursRuns, ours))) / oursRuns / BATCH;
    const floorUs = (await busyUs(() => times(floorRuns, floor))) / floorRuns / BATCH;
    oursUs.push(us);
    ratios.push(floorUs / us);
  }
  return { megabytesPerSecond: short(text.length / median(oursUs)), speed: short(median(ratios)) };
}

/** Reads of a sample's unit: so many that the promise around them does not count. */
const BATCH = 50;

function repeat(read: () => unknown): void {
  for (let done = 0; done < BATCH; done += 1) read();
}

function speedRow(what: string, { megabytesPerSecond, speed }: Speed): Row {
  return [what, `${megabytesPerSecond} MB/s`, `${speed} times the speed of JSON.parse`];
}

if (process.argv[1] === import.meta.filename) {
  const { keys, rows } = await parse();
  console.log(process.argv.includes('--json') ? JSON.stringify(keys) : table('lrl', rows));
}
