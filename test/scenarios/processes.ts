/** Starts processes of the agent, and kills them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Journal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { JsonObject, RunResult } from '#pilotage';
import { foldEntries, type RunState } from '#state';
import { builtFile } from '../kit/built.ts';
import type { Command } from './agent.ts';

const AGENT = builtFile('test/scenarios/agent.ts');

export type Said = RunResult | { readonly status: 'refused'; readonly code?: string; readonly message: string };

export interface Place {
  readonly folder: string;
  /** Lets a process do it, to its end. */
  run(command: Command): Promise<Said>;
  /** Lets a process do it until the tool that hangs is in the middle of its work, and kills it there. */
  killInside(command: Command & { readonly hangs: string }): Promise<void>;
  /** What the store has, read by this process. */
  state(run: string): Promise<RunState>;
  journal<T>(use: (journal: Journal) => Promise<T>): Promise<T>;
  /** The calls that wait for an answer, as `call id → token`. */
  open(run: string): Promise<Readonly<Record<string, string>>>;
  remove(): void;
}

export function place(name: string): Place {
  const folder = mkdtempSync(join(tmpdir(), `pilotage-${name}-`));
  const begin = (command: Command): ChildProcess =>
    spawn(process.execPath, [AGENT, folder, JSON.stringify(command)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const journal = async <T>(use: (journal: Journal) => Promise<T>): Promise<T> => {
    const opened = sqliteJournal({ path: join(folder, 'pilotage.db') });
    try {
      return await use(opened);
    } finally {
      await opened.close();
    }
  };
  const state = (run: string): Promise<RunState> => journal(async (store) => foldEntries(await store.read(run)));
  return {
    folder,
    journal,
    state,
    run: async (command) => {
      const child = begin(command);
      const [said, complaint, code] = await Promise.all([textOf(child.stdout), textOf(child.stderr), exitOf(child)]);
      const line = said.split('\n').at(-2);
      if (code !== 0 || line === undefined) throw new Error(`The agent ended with ${code}: ${said}${complaint}`);
      return JSON.parse(line) as Said;
    },
    killInside: async (command) => {
      const child = begin(command);
      const complaint = textOf(child.stderr);
      for await (const text of child.stdout ?? []) if (String(text).includes('inside')) child.kill('SIGKILL');
      const code = await exitOf(child);
      if (code !== 'SIGKILL') throw new Error(`The agent was not killed, it ended with ${code}: ${await complaint}`);
    },
    open: async (run) => {
      const { pauses, open } = await state(run);
      const decision = open?.move.decision;
      const branches = decision?.kind === 'call_parallel' ? decision.branches : [];
      return Object.fromEntries(pauses.map(({ token, call = 0 }) => [branches[call]?.callId ?? String(call), token]));
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function exitOf(child: ChildProcess): Promise<number | string> {
  if (child.exitCode !== null || child.signalCode !== null) return child.signalCode ?? child.exitCode ?? 0;
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  return signal ?? code ?? 0;
}

async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = '';
  for await (const piece of stream ?? []) text += String(piece);
  return text;
}

/** Fails unless the run is paused; its pauses. */
export function pausesIn(
  said: Said,
): readonly { readonly run: string; readonly token: string; readonly reason: string; readonly payload?: JsonObject }[] {
  if (said.status !== 'paused') throw new Error(`It is not paused: ${JSON.stringify(said)}`);
  return said.pauses;
}
