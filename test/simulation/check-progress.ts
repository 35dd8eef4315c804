/** Runs that go round in circles, and those that do not, told apart by hand. */
import type { Branch, Decision, Entry, JsonObject, Outcome } from '#core';
import type { ProgressGuard } from '#runtime';
import { HEARD } from './check-accounts.ts';
import { type EndedRun, entriesOf, ownEntries } from './ended-run.ts';
import type { Ledger } from './ledger.ts';

/** The runtime's own, for a program that says nothing. */
const HINT_AFTER = 3;
/** The longest circle that is looked for, in steps. */
const LONGEST = 4;

export function checkProgress(run: EndedRun, guard: ProgressGuard | undefined, ledger: Ledger): void {
  const { hintAfter = HINT_AFTER, action, actAfter = 2 * hintAfter } = guard ?? {};
  const steps = stepsOf(run.entries);
  for (const { step, period, times } of entriesOf(run, 'no_progress')) {
    if (times < hintAfter) ledger.violated('progress', `it is told of ${times} times`, run.id);
    if (timesBefore(steps, step, period) < times)
      ledger.violated('progress', `at step ${step} it is told of ${times} times ${period} steps that differ`, run.id);
  }
  const copied = run.entries.length - ownEntries(run).length;
  let decided = 0;
  for (const entry of run.entries) {
    if (entry.kind === 'moved') decided = entry.step + 1;
    if (entry.seq <= copied) continue;
    const deed = entry.kind === 'finished' ? entry.metadata : entry.kind === 'paused' ? entry.payload : undefined;
    if (deed?.['no_progress'] !== true) continue;
    const isCircle = timesBefore(steps, decided, Number(deed['period'])) >= actAfter;
    if (isCircle && action === (entry.kind === 'finished' ? 'end' : 'pause')) continue;
    ledger.violated('progress', `it was ${entry.kind} for going round in circles, and it did not`, run.id);
  }
  checkTold(run, steps, hintAfter, action === undefined ? Number.POSITIVE_INFINITY : actAfter, ledger);
}

/** What is done over and over is told of before the next step, and not done any more once the program says so. */
function checkTold(run: EndedRun, steps: readonly string[], hintAfter: number, actAfter: number, ledger: Ledger): void {
  // Somebody who speaks or answers a pause of the whole run, and the beginning of a fork, make the count begin anew.
  const isPlain = run.entries.every(
    (entry) =>
      !BEGINS_ANEW.has(entry.kind) &&
      (entry.kind !== 'started' || entry.fork === undefined) &&
      (entry.kind !== 'control' || !HEARD.has(entry.control.type)),
  );
  if (!isPlain) return;
  const told = new Set(entriesOf(run, 'no_progress').map(({ step }) => step));
  // What undoes is decided by nobody.
  const undoes = entriesOf(run, 'unwinding')[0]?.seq ?? Number.POSITIVE_INFINITY;
  for (const { step, seq } of entriesOf(run, 'moved')) {
    if (seq > undoes) break;
    const times = Math.max(...Array.from({ length: LONGEST }, (_, index) => timesBefore(steps, step, index + 1)));
    if (times >= hintAfter && !told.has(step)) {
      ledger.violated('progress', `step ${step} was decided after ${times} times the same, and nobody said so`, run.id);
    }
    if (times >= actAfter)
      ledger.violated('progress', `step ${step} was decided after ${times} times the same`, run.id);
  }
}

const BEGINS_ANEW: ReadonlySet<Entry['kind']> = new Set(['resumed', 'reopened']);

/** How often in a row just before this step the same so many steps came. 0 when none of them has made a call. */
function timesBefore(steps: readonly string[], step: number, period: number): number {
  const round = steps.slice(Math.max(0, step - period), step);
  if (round.length < period || !round.some((text) => text.includes(CAME_TO))) return 0;
  let same = 0;
  while (step - period - same > 0 && steps[step - 1 - same] === steps[step - 1 - same - period]) same += 1;
  return Math.floor(same / period) + 1;
}

const CAME_TO = '; came to';

interface Told {
  readonly move: Extract<Entry, { kind: 'moved' }>;
  readonly grown: Branch[];
  readonly outcomes: string[];
}

/** By step: what was decided, and what each of its calls came to. What somebody has answered is like nothing else. */
function stepsOf(entries: readonly Entry[]): string[] {
  const steps: Told[] = [];
  const asked = new Map<string, Extract<Entry, { kind: 'paused' }>>();
  for (const entry of entries) {
    if (entry.kind === 'moved') steps[entry.step] = { move: entry, grown: [], outcomes: [] };
    if (entry.kind === 'plan_grown') steps[entry.step]?.grown.push(...entry.branches);
    if (entry.kind === 'paused') asked.set(entry.token, entry);
    const ended = entry.kind === 'call_ended' ? entry : settledBy(entry, asked);
    if (ended === undefined) continue;
    const { outcome, step, call } = ended;
    const value = outcome.kind === 'value' ? outcome.value : outcome.kind === 'verdict' ? entry.seq : outcome;
    steps[step]?.outcomes.push(`${CAME_TO} ${call} ${JSON.stringify(value)}`);
  }
  return steps.map(textOf);
}

/** What somebody said that a call in doubt has come to. */
function settledBy(
  entry: Entry,
  asked: ReadonlyMap<string, Extract<Entry, { kind: 'paused' }>>,
): { readonly step: number; readonly call: number; readonly outcome: Outcome } | undefined {
  if (entry.kind !== 'resumed' || entry.verdict !== 'settle' || entry.outcome === undefined) return undefined;
  const { step, call } = asked.get(entry.token) ?? {};
  return step === undefined || call === undefined ? undefined : { step, call, outcome: entry.outcome };
}

function textOf({ move: { decision, rejected, fault, seq }, grown, outcomes }: Told): string {
  const whole: Decision | JsonObject =
    decision.kind === 'call_parallel' ? { ...decision, branches: [...decision.branches, ...grown] } : decision;
  const text = JSON.stringify(whole, (key, value: unknown) => (key === 'callId' ? undefined : value));
  if (outcomes.length > 0) return `${text}${outcomes.sort().join('')}`;
  // Where nothing was called, and nothing went wrong, somebody outside has moved the run.
  return `${text} ${JSON.stringify(rejected ?? fault ?? seq)}`;
}
