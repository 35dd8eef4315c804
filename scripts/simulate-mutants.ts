/**
 * Shows that the simulation bites: makes one known fault after another in a copy of the sources, and plays seeds until a history
 * fails. The last line is JSON; a fault that nothing noticed, or whose place in the sources is gone, makes it fail.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const MUTANTS: readonly Mutant[] = [
  {
    name: 'start a branch although what it needs has failed',
    file: 'runtime/schedule.ts',
    find: "if (outcome.kind !== 'value') return skipped(",
    replace: "if (outcome.kind === 'cancelled') return skipped(",
  },
  {
    name: 'never close a plan that nobody goes on with',
    file: 'runtime/driver.ts',
    find: 'if (growth === undefined) return this.#commit([cutOff(step)]);',
    replace: 'if (growth === undefined) return this.#commit([]);',
  },
  {
    name: 'skip the fencing check',
    file: 'journal/rules.ts',
    find: 'if (append.fence !== now.fence) {',
    replace: 'if (append.fence < 0) {',
  },
  {
    name: 'ignore the expected head',
    file: 'journal/rules.ts',
    find: 'if (append.expected !== now.head) throw',
    replace: 'if (append.expected < 0) throw',
  },
  {
    name: 'end without a look at the inbox',
    file: 'journal/rules.ts',
    find: 'if (seenSignals === undefined || signals <= seenSignals) return;',
    replace: 'if (seenSignals === undefined || signals >= 0) return;',
  },
  {
    name: 'deliver a wake twice',
    file: 'journal/memory.ts',
    find: 'run.inbox.set(message.id, message);',
    replace:
      "run.inbox.set(message.id, message); if (message.type === 'TASK_ENDED') run.inbox.set('again', { ...message, id: 'again' });",
  },
  {
    name: 'drop an inbox row',
    file: 'journal/memory.ts',
    find: 'run.inbox.set(message.id, message);',
    replace: 'if (run.inbox.size === 0) run.inbox.set(message.id, message);',
  },
  {
    name: 'lose what an append takes out of the inbox',
    file: 'journal/memory.ts',
    find: 'for (const id of append.takes) run.inbox.delete(id);',
    replace: 'run.updatedAt = now;',
  },
  {
    name: 'tell nobody that a task has ended',
    file: 'journal/memory.ts',
    find: 'for (const told of append.tells) this.#tell(told, now);',
    replace: 'run.updatedAt = now;',
  },
  {
    name: 'store no task',
    file: 'journal/memory.ts',
    find: 'for (const [start, first] of starts) this.#create(start, first, now);',
    replace: 'run.updatedAt = now;',
  },
  {
    name: 'park although a signal came',
    file: 'journal/memory.ts',
    find: 'const news = run.signals > park.seenSignals;',
    replace: 'const news = run.signals < 0;',
  },
  {
    name: 'claim a run whose lease is not over',
    file: 'journal/memory.ts',
    find: 'run.owner === undefined || run.leaseUntil <= now || run.owner === request.from;',
    replace: 'run.leaseUntil <= now || run.fence >= 0 || run.owner === request.from;',
  },
  {
    name: 'answer a pause that has expired',
    file: 'runtime/controls.ts',
    find: '({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > ports.now,',
    replace: '({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > 0,',
  },
  {
    name: 'answer a pause twice',
    file: 'runtime/controls.ts',
    find: "if (effect.kind === 'resumed') open = open.filter((pause) => pause.token !== effect.token);",
    replace: "if (effect.kind === 'resumed') open = [...open];",
  },
  {
    name: 'let people approve what they asked for',
    file: 'runtime/controls.ts',
    find: 'if (from.user === identity.user && from.tenant === identity.tenant) {',
    replace: "if (from.user === '' && from.tenant === identity.tenant) {",
  },
  {
    name: 'listen to anybody',
    file: 'core/control.ts',
    find: "if (from === undefined || from.scope === 'admin') return;",
    replace: 'if (from === undefined || from.tenant !== null) return;',
  },
  {
    name: 'run a once call again after a crash',
    file: 'runtime/dispatch.ts',
    find: 'if (isOnce && (call.interrupted || ports.atWork.has(call.idempotencyKey))) {',
    replace: 'if (isOnce && ports.atWork.has(call.idempotencyKey)) {',
  },
  {
    name: 'end a call in doubt with the others that a join needs no more',
    file: 'runtime/schedule.ts',
    find: 'return this.#begun.has(call) || this.#spared.has(call);',
    replace: 'return this.#spared.has(call);',
  },
  {
    name: 'let a call in doubt run again when it is only to be looked up',
    file: 'view/run-state.ts',
    find: "if (verdict !== 'settle') return;",
    replace: "if (verdict !== 'settle') return beginAnew(open, call);",
  },
  {
    name: 'end a run over a call in doubt when its time is over',
    file: 'runtime/next.ts',
    find: 'if (holdsDoubt(state)) return awaitSettlement(state, deps);',
    replace: '',
  },
  {
    name: 'begin a once call without writing it down',
    file: 'runtime/dispatch.ts',
    find: 'if (cost !== undefined || isOnce) await ports.begin(call, cost, !isOnce);',
    replace: 'if (cost !== undefined) await ports.begin(call, cost, !isOnce);',
  },
  {
    name: 'enter an effect after a long standstill without asking whose the run is',
    file: 'runtime/dispatch.ts',
    find: '!ports.lease.isCertain &&',
    replace: 'ports.lease.isCertain === undefined &&',
  },
  {
    name: 'believe at once that a call did not happen',
    file: 'runtime/dispatch.ts',
    find: "if (looked.found !== 'not_done' || graceLeftMs === 0) return looked;",
    replace: "if (looked.found !== 'not_done' || graceLeftMs >= 0) return looked;",
  },
  {
    name: 'forget that a run was taken from a process that may live',
    file: 'journal/memory.ts',
    find: 'run.workLeftAt = now;',
    replace: 'run.updatedAt = now;',
  },
  {
    name: 'take an append that lost its lease for landed',
    file: 'runtime/append.ts',
    find: "if (!PilotageError.is(error, 'journal_conflict') ||",
    replace:
      "if (PilotageError.is(error, 'lease_lost')) return;\n      if (!PilotageError.is(error, 'journal_conflict') ||",
  },
  {
    name: 'make a gated call without asking',
    file: 'runtime/dispatch.ts',
    find: 'if (tool.gate !== undefined && call.approval === undefined && !call.interrupted) {',
    replace: 'if (tool.gate === undefined && call.approval === undefined && !call.interrupted) {',
  },
  {
    name: 'forget the arguments that an approver gave',
    file: 'runtime/call-args.ts',
    find: 'if (approved !== undefined) return approved;',
    replace: 'if (approved === null) return approved;',
  },
  {
    name: 'set nothing aside for tasks',
    file: 'view/budget.ts',
    find: 'if (end === undefined) sum += reserved[axis] ?? 0;',
    replace: 'if (end === null) sum += reserved[axis] ?? 0;',
  },
  {
    name: 'forget what tasks have used',
    file: 'view/task-state.ts',
    find: 'totals.costMicroUsd += usage.costMicroUsd;',
    replace: 'totals.costMicroUsd += 0;',
  },
  {
    name: 'give back what the tasks of a task may still use',
    file: 'runtime/task-end.ts',
    find: "steps: usage.steps + setAsideFor(open, 'steps'),",
    replace: 'steps: usage.steps,',
  },
  {
    name: 'forget a task whose end comes with the ending',
    file: 'runtime/task-end.ts',
    find: 'usage.steps += body.usage.steps;',
    replace: 'usage.steps += 0;',
  },
  {
    name: 'give money twice to calls that start together',
    file: 'runtime/taken.ts',
    find: 'for (const money of this.#money.values()) sum += money;',
    replace: 'for (const money of this.#money.values()) sum += money * 0;',
  },
  {
    name: 'let go of a run that was claimed again meanwhile',
    file: 'runtime/fleet.ts',
    find: 'if (this.#live.get(run) === live) this.#live.delete(run);',
    replace: 'this.#live.delete(run);',
  },
  {
    name: 'cascade no cancel',
    file: 'runtime/cascade.ts',
    find: "onCancel === 'cascade').map(",
    replace: "onCancel !== 'cascade' && onCancel !== 'isolate').map(",
  },
  {
    name: 'end although a cancel was stored',
    file: 'runtime/ledger.ts',
    find: "if (this.#state.cancel !== null || !late.some(({ type }) => type === 'CANCEL')) continue;",
    replace: 'if (late.length >= 0) continue;',
  },
  {
    name: 'show a group twice',
    file: 'view/task-state.ts',
    find: 'state.background = [...state.background, deepFreeze({ atStep: nextStep(state), group })];',
    replace:
      'state.background = [...state.background, ...[0, 1].map((later) => deepFreeze({ atStep: nextStep(state) + later, group }))];',
  },
  {
    name: 'go on with a group when a member has failed',
    file: 'runtime/groups.ts',
    find: 'if (failFast && failed !== undefined) {',
    replace: 'if (failFast && failed === null) {',
  },
  {
    name: 'end no group',
    file: 'runtime/groups.ts',
    find: 'const isOver = sealed && members.every(({ end }) => end !== undefined);',
    replace: 'const isOver = sealed && members.length === 0;',
  },
  {
    name: 'give a call another value than the run that carried it out',
    file: 'runtime/called.ts',
    find: 'const value = stored === undefined ? result :',
    replace: 'const value = stored === undefined ? [result] :',
  },
  {
    name: 'have a call carried out again when its run has ended',
    file: 'runtime/calls.ts',
    find: 'if (carried !== undefined) return this.#endCalled(open, branch, carried);',
    replace: 'if (carried === null) return this.#endCalled(open, branch, carried);',
  },
  {
    name: 'let the run go on of a call that is given up',
    file: 'runtime/step-schedule.ts',
    find: 'return carried.length === 0 ? { entries }',
    replace: 'return carried.length >= 0 ? { entries }',
  },
  {
    name: 'await the run of somebody else',
    file: 'runtime/await.ts',
    find: 'return identity.tenant === tenant && identity.user === user && identity.session === session ? found : undefined;',
    replace: 'return identity.tenant !== null || tenant === user || session === user ? found : undefined;',
  },
];

const root = dirname(import.meta.dirname);

/** The last lines of what a simulation of the changed sources printed, if it failed. */
async function caught({ file, find, replace }: Mutant, seeds: string): Promise<string | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'pilotage-mutant-'));
  try {
    for (const part of ['src', 'scripts', 'package.json'])
      cpSync(join(root, part), join(dir, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
    const path = join(dir, 'src', file);
    const text = readFileSync(path, 'utf8');
    const [before, after, ...more] = text.split(find);
    if (before === undefined || after === undefined || more.length > 0) {
      throw new Error(`src/${file} does not have this text exactly once: ${find}`);
    }
    writeFileSync(path, before + replace + after);
    return await firstFailure(dir, seeds);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function firstFailure(dir: string, seeds: string): Promise<string | undefined> {
  const script = join('scripts', 'simulate.ts');
  const child = spawn(process.execPath, [script, '--seeds', seeds, '--threads', '1', '--stop'], { cwd: dir });
  const lines: string[] = [];
  child.stdout.on('data', (chunk: Buffer) => lines.push(...String(chunk).split('\n')));
  child.stderr.on('data', (chunk: Buffer) => lines.push(...String(chunk).split('\n')));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => {
      const last = lines.findLast((line) => line.startsWith('{"seeds"'));
      if (last === undefined) reject(new Error(`The simulation broke down:\n${lines.join('\n')}`));
      else resolve(last.endsWith('"violations":0}') ? undefined : (lines[0] ?? ''));
    });
  });
}

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '20000' }, only: { type: 'string', default: '' } },
});
const chosen = MUTANTS.filter(({ name }) => name.includes(values.only));
let count = 0;
const left = [...chosen];
async function goOn(): Promise<void> {
  for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
    const failure = await caught(mutant, values.seeds).catch((error: unknown) => {
      console.log(`${mutant.name}: ${String(error)}`);
      return undefined;
    });
    if (failure !== undefined) count += 1;
    console.log(
      `${failure === undefined ? 'NOT CAUGHT' : 'caught'}: ${mutant.name}${failure === undefined ? '' : `: ${failure}`}`,
    );
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, goOn));
console.log(JSON.stringify({ mutants: chosen.length, caught: count }));
process.exitCode = count === chosen.length ? 0 : 1;
