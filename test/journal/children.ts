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

/**
 * Runs a mode of `sqlite-child.ts` in a process of its own, which is killed at the end of the test.
 * @param atEnd the test's own hook, for tests side by side: the general one does not know which of them is meant.
 */
export function startChild(mode: string, path: string, atEnd: (kill: () => void) => void = onTestFinished): Child {
  const script = builtFile('test/journal/sqlite-child.ts');
  const child = spawn(process.execPath, [script, mode, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  atEnd(() => {
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
