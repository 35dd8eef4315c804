/** What a planner is shown: its own run as the journal has it, and nothing of another one. */
import { type Identity, isJsonObject, type Json, type RunView } from '#core';
import type { Ledger } from './ledger.ts';
import type { SimulationScript } from './script.ts';

export function checkView(view: RunView, script: SimulationScript, ledger: Ledger): void {
  checkForeign(view, ledger);
  checkInputs(view, script, ledger);
  checkSummary(view, ledger);
}

/** Nothing of another run is in sight. */
function checkForeign(view: RunView, ledger: Ledger): void {
  const { identity, trajectory } = view;
  const { run } = identity;
  const entries = ledger.everRun(run)?.entries ?? [];
  const [first] = entries;
  if (first?.kind !== 'started' || JSON.stringify(first.identity) !== JSON.stringify(identity)) {
    ledger.violated('no foreign data', `the planner was shown the identity ${JSON.stringify(identity)}`, run);
  }
  const own = withOrigins(run, ledger);
  const isOwn = (name: unknown): boolean => own.some((id) => name === id);
  for (const { control } of trajectory.steering) {
    const isFromAbove =
      control.withdraws !== undefined && own.some((id) => isBelow(id, control.payload?.['told_to_the_run_above']));
    // What is written to a run that waits for a task which asks is written to the task.
    const isPassedOn = control.type === 'USER_MESSAGE' && own.some((id) => isBelow(id, control.payload?.['run']));
    // A message of the session is told to the turn that was under way.
    const isTold = control.turnMessage !== undefined && own.some((id) => hasHeard(id, control.id, ledger));
    if (control.id !== FORK_GOAL && !isFromAbove && !isPassedOn && !isTold && !isOwn(control.payload?.['run']))
      ledger.violated('no foreign data', 'a message to another run is shown', run);
  }
  for (const { outcome } of trajectory.step(trajectory.count - 1)?.calls ?? []) {
    if (outcome.kind !== 'value' || !isJsonObject(outcome.value)) continue;
    const { run: made, task_id: task } = outcome.value;
    if (typeof task === 'string' && !isOfOwner(task, identity, ledger)) {
      ledger.violated('no foreign data', `the end of the run ${task} of somebody else is shown`, run);
    }
    if (made !== undefined && !isOwn(made)) ledger.violated('no foreign data', 'a value of another run is shown', run);
  }
  for (const task of trajectory.tasks) {
    if (!own.some((id) => task.id.startsWith(`${id}.`)))
      ledger.violated('no foreign data', `the task ${task.id} is shown`, run);
  }
}

function hasHeard(run: string, control: string, ledger: Ledger): boolean {
  return ledger.everRun(run)?.messages.has(control) === true;
}

function isBelow(run: string, above: Json | undefined): boolean {
  return typeof above === 'string' && run.startsWith(`${above}.`);
}

function isOfOwner(run: string, { tenant, user, session }: Identity, ledger: Ledger): boolean {
  const first = ledger.everRun(run)?.entries[0];
  if (first?.kind !== 'started') return false;
  const { identity } = first;
  return identity.tenant === tenant && identity.user === user && identity.session === session;
}

/** Of a fork also the run whose first steps it shares, and so on. */
function withOrigins(run: string, ledger: Ledger): string[] {
  const chain = [run];
  for (const id of chain) {
    const first = ledger.everRun(id)?.entries[0];
    if (first?.kind === 'started' && first.task === undefined && first.fork !== undefined) chain.push(first.fork.run);
  }
  return chain;
}

/** The attachments of the one who started it, whole; those of a fork are those of its run, and a task has none. */
function checkInputs({ identity: { run }, inputs }: RunView, { roots }: SimulationScript, ledger: Ledger): void {
  const [root = run] = withOrigins(run, ledger).toReversed();
  const files = roots.find((known) => known.run === root)?.files ?? 0;
  const shown = inputs.map(({ bytes }) => (bytes === undefined ? 'nothing' : new TextDecoder().decode(bytes)));
  const wanted = Array.from({ length: files }, (_, index) => attachmentText(root, index));
  if (shown.join() === wanted.join()) return;
  ledger.violated('no foreign data', `attachments are shown as ${shown.join()}, and they are ${wanted.join()}`, run);
}

export function attachmentText(run: string, index: number): string {
  return `the attachment ${index} of ${run}`;
}

/** The last summary that is in the journal, and still all steps. */
function checkSummary({ identity: { run }, trajectory }: RunView, ledger: Ledger): void {
  const entries = ledger.everRun(run)?.entries ?? [];
  const { count, compaction } = trajectory;
  const known = entries.findLast((entry) => entry.kind === 'compacted' && entry.step <= count);
  const wanted = known?.kind === 'compacted' ? known.summary.note : undefined;
  if (compaction?.summary.note !== wanted) {
    ledger.violated('the fold', `the summary ${compaction?.summary.note} is shown, and the last is ${wanted}`, run);
  }
  if (
    trajectory.steps.length !== count ||
    trajectory.step(count - 1)?.index !== (count === 0 ? undefined : count - 1)
  ) {
    ledger.violated('the fold', `${count} steps are counted, and others are shown`, run);
  }
}

/** What a fork is told of its own goal by its first entries. */
const FORK_GOAL = 'fork_goal';
