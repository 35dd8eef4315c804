/** Processes that are killed: what each of them said before. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Life {
  readonly killed: boolean;
  /** What it said, whole lines only. */
  readonly lines: readonly string[];
}

export interface Birth {
  /** The file of the program. From the build (`builtFile`) it starts in half of the time. */
  readonly program: string;
  /** Its first argument. */
  readonly folder: string;
  readonly args: readonly string[];
}

export interface Living extends Birth {
  /** Asked about each line; once it says yes, the process is killed. */
  readonly isEnough: (line: string) => boolean;
  /** How long after that. */
  readonly delayMs: number;
}

export interface Born {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Whether it was killed by SIGKILL. @throws Error when it failed by itself. */
  readonly end: Promise<boolean>;
}

/** Starts `program` on the folder. @param hear gets each whole line that it says. */
export function bear({ program, folder, args }: Birth, hear: (line: string) => void): Born {
  const child = spawn(process.execPath, [program, folder, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  let rest = '';
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const whole = `${rest}${text}`.split('\n');
    rest = whole.pop() ?? '';
    for (const line of whole) hear(line);
  });
  // Nobody hears what is said to a process that has died.
  child.stdin.on('error', () => {});
  const end = once(child, 'close').then(([code, signal]: (number | string | null)[]) => {
    if (signal !== 'SIGKILL' && code !== 0) throw new Error(`The child ended with ${code ?? signal}: ${complaint}`);
    return signal === 'SIGKILL';
  });
  return { child, end };
}

/** Starts `program` on the folder and kills it, unless it has ended by then. @throws Error when it fails by itself. */
export async function live({ isEnough, delayMs, ...birth }: Living): Promise<Life> {
  const lines: string[] = [];
  let isDoomed = false;
  const kill = async (): Promise<void> => {
    if (delayMs > 0) await sleep(delayMs);
    child.kill('SIGKILL');
  };
  const { child, end } = bear(birth, (line) => {
    lines.push(line);
    if (isDoomed || !isEnough(line)) return;
    isDoomed = true;
    void kill();
  });
  return { killed: await end, lines };
}
