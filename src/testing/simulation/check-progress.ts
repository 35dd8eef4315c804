/** Runs that go round in circles, and those that do not, told apart by hand. */
import type { Entry } from '../../core/entry.ts';
import type { ProgressGuard } from '../../runtime/progress-guard.ts';
import { type EndedRun, entriesOf, ownEntries } from './ended-run.ts';
import type { Ledger } from './ledger.ts';

/** The runtime's own, for a program that says nothing. */
const HINT_AFTER = 3;

export function checkProgress(run: EndedRun, guard: ProgressGuard | undefined, ledger: Ledger): void {
  const { hintAfter = HINT_AFTER, action, actAfter = 2 * hintAfter } = guard ?? {};
  const steps = stepsOf(run.entries);
  for (const { step, period, times } of entriesOf(run, 'no_progress')) {
    if (times < hintAfter) ledger.violated('progress', `it is told of ${times} times`, run.id);
    const last = steps.slice(step - period * times, step);
    const isCircle = last.length === period * times && last.every((text, index) => text === last[index % period]);
    if (!isCircle)
      ledger.violated('progress', `at step ${step} it is told of ${times} times ${period} steps that differ`, run.id);
  }
  const ended = ownEntries(run).at(-1);
  if (ended?.kind === 'finished' && ended.metadata?.['no_progress'] === true) {
    if (action !== 'end' || circleBefore(steps, steps.length) < actAfter) {
      ledger.violated('progress', 'it was ended for going round in circles, and it did not', run.id);
    }
  }
  checkTold(run, steps, hintAfter, action === undefined ? Number.POSITIVE_INFINITY : actAfter, ledger);
}

/** A call that is made over and over is told of before the next step, and not made any more once the program says so. */
function checkTold(run: EndedRun, steps: readonly string[], hintAfter: number, actAfter: number, ledger: Ledger): void {
  // Somebody who answers a pause of the whole run, and the beginning of a fork, make the count begin anew.
  const isPlain = run.entries.every(
    (entry) => entry.kind !== 'resumed' && (entry.kind !== 'started' || entry.fork === undefined),
  );
  if (!isPlain) return;
  const told = new Set(entriesOf(run, 'no_progress').map(({ step }) => step));
  for (const { step } of entriesOf(run, 'moved')) {
    const times = circleBefore(steps, step);
    if (times >= hintAfter && !told.has(step)) {
      ledger.violated(
        'progress',
        `step ${step} was decided after ${times} that were the same, and nobody said so`,
        run.id,
      );
    }
    if (times >= actAfter)
      ledger.violated('progress', `step ${step} was decided after ${times} that were the same`, run.id);
  }
}

/** How many steps just before this one were the same. */
function circleBefore(steps: readonly string[], step: number): number {
  const last = steps[step - 1];
  if (last === undefined || !last.startsWith('call_tool') || !last.includes('outcome')) return 0;
  let times = 1;
  while (steps[step - 1 - times] === last) times += 1;
  return times;
}

/** By step: what was decided, and what each of its calls came to. A pause that somebody answered is like no other. */
function stepsOf(entries: readonly Entry[]): string[] {
  const steps: { readonly decided: string; readonly outcomes: string[] }[] = [];
  for (const entry of entries) {
    if (entry.kind === 'moved') {
      const { decision, step, seq } = entry;
      const isPause = decision.kind === 'request_pause';
      const decided = isPause ? `pause ${seq}` : `${decision.kind} ${withoutCallIds(decision)}`;
      steps[step] = { decided, outcomes: [] };
    }
    if (entry.kind === 'plan_grown') steps[entry.step]?.outcomes.push(withoutCallIds(entry.branches));
    if (entry.kind !== 'call_ended') continue;
    const { outcome, step, call } = entry;
    steps[step]?.outcomes.push(`${call} outcome ${JSON.stringify(outcome.kind === 'value' ? outcome.value : outcome)}`);
  }
  return steps.map(({ decided, outcomes }) => [decided, ...outcomes.sort()].join('; '));
}

function withoutCallIds(decided: unknown): string {
  return JSON.stringify(decided, (key, value: unknown) => (key === 'callId' ? undefined : value));
}
