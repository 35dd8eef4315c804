/** What a program gives a runtime beside planners and tools: its policy, and who writes the summaries of its sessions. */
import { isJsonObject, type ToolPolicy } from '#core';
import type { MemoryOptions } from '#runtime';
import type { Ledger } from './ledger.ts';
import { oddValue } from './odd.ts';
import type { SimulatedProcess } from './process.ts';
import type { SimulatedMemory } from './script.ts';

export const SUMMARY_FAILS = 'The summary cannot be written.';
const LATE_MS = 120;
const VERY_LATE_MS = 1_500;

/** Says no to calls whose arguments say that they are forbidden. */
export function policyIn(process: SimulatedProcess, ledger: Ledger): ToolPolicy {
  return async ({ tool, args, identity }) => {
    const first = ledger.runs.get(identity.run)?.entries[0];
    if (first?.kind !== 'started' || JSON.stringify(first.identity) !== JSON.stringify(identity)) {
      ledger.violated('no foreign data', `the policy was asked for ${JSON.stringify(identity)}`, identity.run);
    }
    const { forbidden, policyMs } = isJsonObject(args) ? args : {};
    if (typeof policyMs === 'number') await process.wait(policyMs);
    if (forbidden === 'thrown') throw oddValue('proxy');
    if (forbidden === 'late') await process.wait(LATE_MS);
    return forbidden === undefined ? true : `${tool} is forbidden.`;
  };
}

/** A summary names the runs that it covers. */
export function remembering(
  { strategy, turns, failEvery }: SimulatedMemory,
  process: SimulatedProcess,
  ledger: Ledger,
): MemoryOptions {
  if (strategy === 'window') return { strategy, turns };
  let asked = 0;
  return {
    strategy,
    turns,
    retries: 2,
    summarise: async ({ previous, turns: more }) => {
      asked += 1;
      // Mostly soon, and sometimes when other turns have come.
      await process.wait(asked % 2 === 0 ? LATE_MS : VERY_LATE_MS);
      if (failEvery !== undefined && asked % failEvery === 0) throw new Error(SUMMARY_FAILS);
      const text = [...(previous === undefined ? [] : [previous]), ...more.map(({ run }) => run)].join(' ');
      ledger.tell(process.name, () => `summarises ${text}`);
      return text;
    },
  };
}
