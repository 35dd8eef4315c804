/** A history in words, for whoever has to find out why it failed. */
import type { TimelineLine, Violation } from './ledger.ts';
import type { Played } from './play.ts';
import type { SimulationScript } from './script.ts';
import { SimulatedTime } from './time.ts';

export function violationText({ invariant, run, what }: Violation): string {
  return `${invariant}: ${run === undefined ? '' : `${run}: `}${what}`;
}

/** What was played, and what happened, line by line with the milliseconds since the beginning. */
export function historyText(script: SimulationScript, { violations, timeline }: Played): string {
  const startMs = script.calendar?.startMs ?? new SimulatedTime().startedAt;
  return [
    `seed ${script.seed}: ${script.workers} workers, ${script.slots} runs each, leases of ${script.leaseMs} ms, wake ${script.wakeMode}, ` +
      `delays ${script.delays.chance} × ${script.delays.maxMs} ms`,
    `world ${JSON.stringify(script.world)}`,
    ...script.roots.map((root) => `root ${JSON.stringify(root)}`),
    ...Object.entries(script.plans).map(([name, plan]) => `plan ${name} ${JSON.stringify(plan)}`),
    ...script.acts.map((act) => `act ${JSON.stringify(act)}`),
    ...(script.starts ?? []).map((start) => `starts ${JSON.stringify(start)}`),
    ...(script.approvals ?? []).map((act) => `decides ${JSON.stringify(act)}`),
    ...script.faults.map((fault) => `fault ${JSON.stringify(fault)}`),
    ...(script.streamReaders ?? []).map((reader) => `reader ${JSON.stringify(reader)}`),
    ...(script.calendar === undefined ? [] : [`calendar ${JSON.stringify(script.calendar)}`]),
    ...timeline.map((line) => lineText(line, startMs)),
    ...violations.map((violation) => `VIOLATION ${violationText(violation)}`),
  ].join('\n');
}

function lineText({ at, who, what }: TimelineLine, startMs: number): string {
  return `${(at - startMs).toFixed(0).padStart(7)} ${who.padEnd(6)} ${what}`;
}
