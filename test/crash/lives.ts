/** Processes that are killed: what each of them said before. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Life {
  readonly killed: boolean;
  /** What it said, whole lines only. */
  readonly lines: readonly string[];
}

export interface Living {
  /** The file of the program. */
  readonly program: string;
  readonly folder: string;
  readonly args: readonly string[];
  /** Asked about each line; once it says yes, the process is killed. */
  readonly isEnough: (line: string) => boolean;
  /** How long after that. */
  readonly delayMs: number;
}

/** Starts `program` on the folder and kills it, unless it has ended by then. @throws Error when it fails by itself. */
export async function live({ program, folder, args, isEnough, delayMs }: Living): Promise<Life> {
  const child = spawn(process.execPath, [program, folder, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') },
  });
  const lines: string[] = [];
  let rest = '';
  let complaint = '';
  let isDoomed = false;
  const kill = async (): Promise<void> => {
    if (delayMs > 0) await sleep(delayMs);
    child.kill('SIGKILL');
  };
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const whole = `${rest}${text}`.split('\n');
    rest = whole.pop() ?? '';
    lines.push(...whole);
    if (isDoomed || !whole.some(isEnough)) return;
    isDoomed = true;
    void kill();
  });
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  if (signal !== 'SIGKILL' && code !== 0) throw new Error(`The child ended with ${code ?? signal}: ${complaint}`);
  return { killed: signal === 'SIGKILL', lines };
}
