/** Tools whose work is a function of the test. */
import type { Json } from '#core';
import type { Tool, ToolContext } from '#tools';
import { aborted, gate } from './waiting.ts';

/** Takes any object. */
export const ANY = { type: 'object' } as const;

export type Runs = (args: Record<string, Json>, context: ToolContext) => unknown;

export function make(name: string, run: Runs, more: Partial<Tool> = {}): Tool {
  return { name, description: name, inputSchema: ANY, effect: 'pure', execute: run, ...more } as Tool;
}

const refuses = (): Promise<never> => Promise.reject(new Error('No store is here.'));

/** What a tool has that is called by hand. */
export const noStore: ToolContext['store'] = {
  put: refuses,
  get: refuses,
  list: refuses,
  search: refuses,
  delete: refuses,
};

export const noStream: ReturnType<ToolContext['stream']> = { write: refuses, close: refuses };

/** A tool that gives back its arguments. */
export const echo: Tool = make('echo', (args) => args);

export interface Holding {
  readonly tool: Tool;
  readonly entered: Promise<void>;
  release(): void;
  /** How often it was called. */
  runs(): number;
}

/** A tool that waits until it is released. */
export function holding(): Holding {
  const entered = gate();
  const held = gate();
  let runs = 0;
  const tool = make('hold', async (_, { signal }) => {
    runs += 1;
    entered.open();
    await Promise.race([held.opened, aborted(signal)]);
    return `run ${runs}`;
  });
  return { tool, entered: entered.opened, release: () => held.open(), runs: () => runs };
}

const waitsNot = (): Promise<never> => Promise.reject(new Error('A call by hand waits for nothing.'));

/** A call that is made by hand waits for nothing, and records nothing. */
export const noWaits: Pick<ToolContext, 'ask' | 'sleep' | 'event' | 'once'> = {
  ask: waitsNot,
  sleep: waitsNot,
  event: waitsNot,
  once: async (_, work) => work(),
};
