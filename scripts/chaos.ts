/**
 * Several processes on one SQLite file, or on a Postgres database (`--journal postgres://…`), that are killed, stopped, blocked, whose clocks are set, and whose disk is full at times:
 * `npm run chaos -- --minutes 20 --seed 1`. An outside ledger says what happened in the world. Rounds of about a minute are played until
 * the time is over; `--deeds kills,stops` does nothing else to the processes, and `--processes` says how many there are. Prints a sentence for each thing that must not be, and at last one line of JSON. The exit code is 1 when any of
 * the counts that must be 0 is not.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { IN_A_ROOM, mayHaveRoom, ROOM_MARK } from '../test/chaos/disk.ts';
import { ALL_DEEDS, playRound, type RoundReport } from '../test/chaos/round.ts';
import { isDatabase } from '../test/chaos/store.ts';
import { countsOf, isClean, problemLines } from '../test/chaos/tell.ts';

const ROUND_MS = 45_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
    processes: { type: 'string', default: '4' },
    deeds: { type: 'string', default: ALL_DEEDS.join() },
    journal: { type: 'string' },
  },
});
const [minutes, seed, processes] = [values.minutes, values.seed, values.processes].map(Number) as [
  number,
  number,
  number,
];
if (!(minutes > 0)) throw new Error('--minutes must be a number over 0.');
for (const [name, value] of Object.entries({ seed, processes })) {
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a whole number from 1 up.`);
}

const deeds = values.deeds.split(',').flatMap((name) => ALL_DEEDS.find((each) => each === name) ?? []);
if (deeds.length === 0) throw new Error(`--deeds must name some of ${[...new Set(ALL_DEEDS)].join(', ')}.`);

const { journal: database } = values;
if (database !== undefined && !isDatabase(database)) throw new Error('--journal takes the URL of a Postgres database.');

if (database === undefined && process.env[ROOM_MARK] === undefined && mayHaveRoom()) process.exitCode = await inARoom();
else await main();

/** This program again, where it may mount a small disk. @returns its exit code. */
async function inARoom(): Promise<number> {
  const [command = '', ...args] = IN_A_ROOM;
  const child = spawn(command, [...args, process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [ROOM_MARK]: '1' },
  });
  const [code] = await once(child, 'exit');
  return Number(code ?? 1);
}

async function main(): Promise<void> {
  const why = database === undefined ? 'No disk can be mounted here' : 'The disk of the database is not ours';
  if (process.env[ROOM_MARK] === undefined) console.error(`${why}: it is never full.`);
  const started = performance.now();
  const endsAt = started + minutes * 60_000;
  const reports: RoundReport[] = [];
  do {
    const ms = Math.min(ROUND_MS, Math.max(1_000, endsAt - performance.now()));
    const report = await playRound({
      seed: seed + reports.length,
      ms,
      processes,
      deeds,
      ...(database === undefined ? {} : { database }),
    });
    reports.push(report);
    for (const line of problemLines(report)) console.log(line);
  } while (performance.now() < endsAt - 1_000);
  console.log(JSON.stringify({ ...countsOf(reports), seed, ms: Math.round(performance.now() - started) }));
  process.exitCode = reports.every(isClean) ? 0 : 1;
}
