/** What a program gives a runtime beside planners and tools: its policy. */
import { isJsonObject, type ToolPolicy } from '#core';
import { GATED_KINDS, policySays } from './gated-tools.ts';
import type { Ledger } from './ledger.ts';
import { oddValue } from './odd.ts';
import type { SimulatedProcess } from './process.ts';

const LATE_MS = 120;

/** Says no to calls whose arguments say that they are forbidden. */
export function policyIn(process: SimulatedProcess, ledger: Ledger): ToolPolicy {
  return async ({ tool, args }, { identity }) => {
    const first = ledger.everRun(identity.run)?.entries[0];
    if (first?.kind !== 'started' || JSON.stringify(first.identity) !== JSON.stringify(identity)) {
      ledger.violated('no foreign data', `the policy was asked for ${JSON.stringify(identity)}`, identity.run);
    }
    const { forbidden, policyMs } = isJsonObject(args) ? args : {};
    ledger.approvals.asked(process, identity.run, args, {
      order: ledger.next(),
      at: ledger.now(),
      wallMs: process.wallMs(),
    });
    if (typeof policyMs === 'number') await process.wait(policyMs);
    if (forbidden === 'thrown') throw oddValue('proxy');
    if (forbidden === 'late') await process.wait(LATE_MS);
    const said = tool in GATED_KINDS ? policySays(args) : 'allow';
    if (said !== 'allow') return said;
    return forbidden === undefined ? 'allow' : { deny: `${tool} is forbidden.` };
  };
}
