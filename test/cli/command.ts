/**
 * Runs the command in a folder of its own: in a process of its own as a user does (`start`), or in this one (`run`), which
 * takes a hundredth of the time and shows the same of all that does not end, kill or share a process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import type { runCommandLine } from '#cli';
import type { RunEvent } from '#core';
import { builtFile, builtUrl } from '../kit/built.ts';

const MAIN = builtFile('src/cli/main.ts');
const COMMAND_LINE = builtUrl('src/cli/command-line.ts');

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly done: Promise<Finished>;
  /** Waits until stdout and stderr together have this; fails when the process ends without it. */
  untilOutput(pattern: RegExp): Promise<void>;
}

export interface Folder {
  readonly path: string;
  write(path: string, content: string | Uint8Array): void;
  start(args: readonly string[], env?: Readonly<Record<string, string>>): Started;
  /** In a process on a terminal that is so many columns wide: what is written to `child.stdin` is typed, and `stdout` is the terminal. */
  startOnTerminal(args: readonly string[], columns: number): Started;
  /** One after the other: this process has one working folder. A configuration file is loaded once. */
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Finished>;
}

export function makeFolder(): Folder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'pilotage-cli-')));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    write: (name, content) => {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), content);
    },
    start: (args, env = {}) => startCommand(path, [process.execPath, MAIN, ...args], env),
    startOnTerminal: (args, columns) => {
      // `script` of util-linux and `stty` of coreutils make the terminal. All words here are plain ones.
      const command = ['exec', process.execPath, MAIN, ...args].join(' ');
      const onTerminal = ['script', '-qefc', `stty cols ${columns} rows 24; ${command}`, '/dev/null'];
      return startCommand(path, onTerminal, { TERM: 'xterm', SHELL: '/bin/sh' });
    },
    run: (args, env = {}) => {
      const done = before.then(() => runHere(path, args, env));
      before = done.catch(() => {});
      return done;
    },
  };
}

/** The last command that was begun in this process. */
let before: Promise<unknown> = Promise.resolve();

async function runHere(cwd: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
  const [folder, given] = [process.cwd(), process.env];
  const told = { stdout: '', stderr: '' };
  process.chdir(cwd);
  process.env = { ...ofUser(cwd), ...env };
  try {
    const built: { readonly runCommandLine: typeof runCommandLine } = await import(COMMAND_LINE);
    const code = await built.runCommandLine(args, {
      isLive: false,
      write: (text) => {
        told.stdout += text;
      },
      note: (text) => {
        told.stderr += `${text}\n`;
      },
    });
    return { code, ...told };
  } finally {
    process.env = given;
    process.chdir(folder);
  }
}

/** Nothing of the developer's own models and colours. */
function ofUser(cwd: string): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
  return { PATH, HOME: cwd, NODE_COMPILE_CACHE };
}

function startCommand(cwd: string, command: readonly string[], env: Readonly<Record<string, string>>): Started {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd, env: { ...ofUser(cwd), ...env }, stdio: 'pipe' });
  let stdout = '';
  let stderr = '';
  let look = (): void => {};
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    look();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    look();
  });
  const done = new Promise<Finished>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, stdout, stderr }));
  });
  const untilOutput = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      look = () => {
        if (pattern.test(stdout + stderr)) resolve();
      };
      look();
      done.then(() => reject(new Error(`ended without ${pattern}:\n${stdout}\n${stderr}`)), reject);
    });
  return { child, done, untilOutput };
}

/** Every line must be an event. */
export function eventsIn(stdout: string): RunEvent[] {
  const lines = stdout.split('\n');
  if (lines.pop() !== '') throw new Error('The last line has no end.');
  return lines.map((line) => JSON.parse(line) as RunEvent);
}

/** The id of the run that an output names. */
export function runIn(text: string): string {
  const found = /\brun_[0-9a-z]+/.exec(text)?.[0];
  if (found === undefined) throw new Error(`No run is named in:\n${text}`);
  return found;
}
