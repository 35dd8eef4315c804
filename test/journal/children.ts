/** Runs `sqlite-child.ts` in processes of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { builtFile } from '../kit/built.ts';

export interface Child {
  readonly process: ChildProcess;
  /** The next line that the child prints; undefined when it has ended. */
  line(): Promise<string | undefined>;
  /** Resolves with the exit code, or the name of the signal. */
  readonly ended: Promise<number | string>;
}

/** Runs a mode of `sqlite-child.ts` in a process of its own. */
export function startChild(mode: string, path: string): Child {
  const script = builtFile('test/journal/sqlite-child.ts');
  const child = spawn(process.execPath, [script, mode, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  return {
    process: child,
    ended,
    line: async () => {
      const next = await lines.next();
      return next.done === true ? undefined : next.value;
    },
  };
}
