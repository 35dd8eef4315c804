/**
 * One of the processes that act: `node actor.ts <folder>` does what it is told on standard input, one command a line, on the
 * SQLite file of the folder, and says what comes of it on standard output.
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Json, local, type Runtime } from '#pilotage';
import type { PauseNotice, Settlement } from '#runtime';
import { scenarios } from './scenarios.ts';
import { Springs, say, type Trap, trapped } from './traps.ts';
import { World } from './world.ts';

/** What both processes of a play go by. */
export interface PlaySettings {
  /** Also the id of its run, and the name of its model. */
  readonly play: string;
  readonly scenario: string;
  readonly page: Json;
  readonly baseUrl: string;
  readonly leaseMs: number;
  readonly takeoverGraceMs: number;
  readonly timeoutMs: number;
  readonly vague?: 'unknown' | 'throws';
  readonly deadlineMs?: number;
}

export type Command =
  /** Starts the run. */
  | { readonly do: 'start'; readonly settings: PlaySettings; readonly trap?: Trap }
  /** Takes over what is due; with `resume` it asks for the run by name first. */
  | { readonly do: 'take'; readonly settings: PlaySettings; readonly resume: boolean; readonly trap?: Trap }
  | { readonly do: 'settle'; readonly play: string; readonly token: string; readonly settlement: Settlement }
  | { readonly do: 'cancel'; readonly play: string }
  /** Only says so: then it is awake. */
  | { readonly do: 'wake'; readonly play: string }
  /** Lets go of the play. */
  | { readonly do: 'drop'; readonly play: string };

export type Said =
  | { readonly said: 'ready' }
  | { readonly said: 'trap'; readonly play: string; readonly pid: number }
  /** It drives the run now, or a task of it. */
  | { readonly said: 'claimed'; readonly play: string }
  | { readonly said: 'paused'; readonly play: string; readonly pauses: readonly PauseNotice[] }
  | { readonly said: 'ended'; readonly play: string; readonly how: string }
  /** What a command came to. */
  | { readonly said: 'did'; readonly play: string; readonly what: Command['do']; readonly fault?: string }
  | { readonly said: 'fault'; readonly play: string; readonly code: string; readonly message: string };

const [folder = ''] = process.argv.slice(2);
const tell = (line: Said): void => say(line);
const journal = sqliteJournal({ path: join(folder, 'pilotage.db'), watchIntervalMs: 30, synchronous: 'normal' });
/** Enough for whoever does it all again and again. */
const STEPS = 40;
const plays = new Map<string, Runtime>();

function open({ settings, trap }: { readonly settings: PlaySettings; readonly trap?: Trap }): Runtime {
  const { play, scenario: name, baseUrl, leaseMs, takeoverGraceMs } = settings;
  const springs = new Springs(play, trap);
  const scenario = scenarios.find((candidate) => candidate.name === name);
  if (scenario === undefined) throw new Error(`There is no scenario ${name}.`);
  const runtime = createRuntime({
    ...scenario.make(new World({ ...settings, folder, springs }), { baseUrl, model: play }),
    journal: trapped(journal, springs, () => tell({ said: 'claimed', play })),
    leaseMs,
    takeoverGraceMs,
    limits: { steps: STEPS },
    onFault: (error) => tell({ said: 'fault', play, ...describe(error) }),
  });
  plays.set(play, runtime);
  return runtime;
}

function describe(error: unknown): { readonly code: string; readonly message: string } {
  const { code = '', message = String(error) } = error as { code?: string; message?: string };
  return { code, message };
}

/** Says what the run comes to, until it has ended. */
async function follow(play: string, runtime: Runtime): Promise<void> {
  const told = new Set<string>();
  while (plays.get(play) === runtime) {
    const result = await runtime.run(play).result();
    if (result.status === 'paused') {
      const fresh = result.pauses.filter(({ token }) => !told.has(token));
      for (const { token } of fresh) told.add(token);
      if (fresh.length > 0) tell({ said: 'paused', play, pauses: fresh });
      // An answer may be on its way.
      await new Promise((resolve) => setTimeout(resolve, 20));
    } else {
      const how =
        result.status === 'finished' ? result.reason : `failed: ${result.error.code}: ${result.error.message}`;
      tell({ said: 'ended', play, how });
      return;
    }
  }
}

async function obey(command: Command): Promise<void> {
  switch (command.do) {
    case 'start': {
      const { play, deadlineMs } = command.settings;
      const runtime = open(command);
      await runtime.start('See to the fee, the letter and the room.', {
        identity: local('ana', { run: play }),
        context: { args: {} },
        ...(deadlineMs === undefined ? {} : { limits: { steps: STEPS, deadlineAt: Date.now() + deadlineMs } }),
      });
      following(play, runtime);
      return;
    }
    case 'take': {
      const { play } = command.settings;
      const runtime = open(command);
      if (command.resume) await runtime.run(play).resume().catch(notNeeded);
      runtime.work();
      following(play, runtime);
      return;
    }
    case 'settle':
      await plays.get(command.play)?.run(command.play).settle(command.token, command.settlement);
      return;
    case 'cancel':
      await plays.get(command.play)?.run(command.play).cancel({ reason: 'enough' });
      return;
    case 'wake':
      return;
    case 'drop': {
      const runtime = plays.get(command.play);
      plays.delete(command.play);
      await runtime?.close();
      return;
    }
    default:
      command satisfies never;
  }
}

/** Somebody else was faster: the run has ended, or waits for a person already. */
function notNeeded(error: unknown): void {
  if (!['run_ended', 'payload_invalid', 'pause_not_found'].includes(describe(error).code)) throw error;
}

function following(play: string, runtime: Runtime): void {
  follow(play, runtime).catch((error: unknown) => {
    // Whoever lost the run, or was told to let go of it, follows it no longer.
    if (plays.get(play) === runtime) tell({ said: 'fault', play, ...describe(error) });
  });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const command = JSON.parse(line) as Command;
  const play = 'settings' in command ? command.settings.play : command.play;
  obey(command).then(
    () => tell({ said: 'did', play, what: command.do }),
    (error: unknown) => tell({ said: 'did', play, what: command.do, fault: JSON.stringify(describe(error)) }),
  );
});
process.stdin.on('end', () => process.exit(0));
tell({ said: 'ready' });
