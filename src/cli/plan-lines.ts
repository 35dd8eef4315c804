/** What is told of a plan and its making. */
import {
  branchId,
  type CallParallel,
  type EntryBody,
  type ErrorData,
  isJsonObject,
  isPlan,
  type Json,
  type PlanFault,
  type PlanTry,
  type RunEvent,
} from '#core';
import { type PlanView, planOfDecision } from '#state';
import { type Line, line } from './terminal.ts';
import { count, duration, grouped, shortLine } from './text.ts';

type PlanEvent = RunEvent<'plan.retrieved' | 'plan.try' | 'plan.verified' | 'plan.fallback' | 'plan.grown'>;

export function planEventLines(event: PlanEvent): Line[] {
  switch (event.type) {
    case 'plan.retrieved':
      return [retrievedLine(event)];
    case 'plan.try':
      return [tryLine(event)];
    case 'plan.verified':
      return [verifiedLine(event)];
    case 'plan.fallback': {
      const then = event.planner === undefined ? 'there is no fallback' : `${shortLine(event.planner, 60)} takes over`;
      return [line('bad', `! no plan from the models (${event.because}): ${then}`)];
    }
    case 'plan.grown': {
      const { nodes, done, error } = event;
      if (error !== undefined) return [line('bad', `! the plan ends at ${count(nodes, 'node')}: ${errorText(error)}`)];
      return done ? [line('quiet', `  the plan is whole: ${count(nodes, 'node')}`)] : [];
    }
    default:
      return event satisfies never;
  }
}

/** The faults of a plan that was refused, when there are several. */
export function faultLines({ data }: ErrorData): Line[] {
  const faults = data?.['faults'];
  if (!Array.isArray(faults) || faults.length < 2) return [];
  return faults.flatMap((fault: unknown) => {
    const message = isJsonObject(fault) ? fault['message'] : undefined;
    return typeof message === 'string' ? [line('bad', `    ${shortLine(message, 300)}`)] : [];
  });
}

function retrievedLine({ documents, tokens, cut, error }: RunEvent<'plan.retrieved'>): Line {
  if (error !== undefined) return line('bad', `! nothing could be looked up: ${errorText(error)}`);
  const shortened = cut === 0 ? '' : `; ${grouped(cut)} shortened or left out`;
  const size = `about ${grouped(tokens)} tokens`;
  return line('quiet', `  looked up: ${count(documents, 'document')}, ${size}${shortened}`);
}

/** What a try came to, for people. */
const RESULTS: Readonly<Record<PlanTry['result'], string>> = {
  valid: 'valid',
  unreadable: 'no plan in the reply',
  invalid: 'not valid',
  forbidden: 'forbidden',
  failed: 'no reply',
};

function tryLine({ try: number, purpose, model, template, result, faults, latencyMs }: RunEvent<'plan.try'>): Line {
  const words = [
    `  try ${number} (${purpose})`,
    `${shortLine(model, 60)} with ${shortLine(template.id, 40)} ${template.version}`,
    `${RESULTS[result]}${faultsText(faults)}`,
    duration(latencyMs),
  ];
  return line(result === 'valid' ? 'quiet' : 'bad', words.join('  '));
}

function verifiedLine({ candidates, valid, chosen, rejected = [], error }: RunEvent<'plan.verified'>): Line {
  const [first] = rejected;
  const why = first === undefined ? '' : `, ${rejected.length} rejected: ${shortLine(first.reason, 160)}`;
  if (chosen === undefined) return line('bad', `! no plan was chosen of ${count(candidates, 'candidate')}${why}`);
  const what = `try ${chosen} was chosen of ${count(candidates, 'candidate')}, ${valid} valid${why}`;
  if (error === undefined) return line('quiet', `  ${what}`);
  return line('bad', `! ${what}, without the verifier: ${errorText(error)}`);
}

function faultsText(faults: readonly PlanFault[]): string {
  const [first, ...others] = faults;
  if (first === undefined) return '';
  return `: ${shortLine(first.message, 160)}${others.length === 0 ? '' : ` (and ${count(others.length, 'more fault')})`}`;
}

function errorText({ code, message }: ErrorData): string {
  return `${shortLine(code, 60)}: ${shortLine(message, 160)}`;
}

/** The plan of a run's step under way, as its entries come by: events know calls by their index only. */
export class PlanSeen {
  #plan: CallParallel | undefined;
  #step = -1;
  #growing = false;

  /** To be told of each entry before its events are. */
  note(entry: EntryBody): void {
    if (entry.kind === 'moved') {
      const { decision, rejected, step, growing } = entry;
      this.#plan = rejected === undefined && isPlan(decision) ? decision : undefined;
      this.#step = step;
      this.#growing = growing === true;
    } else if (entry.kind === 'plan_grown' && this.#plan !== undefined) {
      this.#plan = { ...this.#plan, branches: [...this.#plan.branches, ...entry.branches] };
      this.#growing = entry.done !== true;
    }
  }

  /** The plan as it was made; `undefined` when the step does not carry out a plan. */
  view(step: number): PlanView | undefined {
    if (this.#plan === undefined || step !== this.#step) return undefined;
    return planOfDecision(this.#plan, step, this.#growing);
  }

  /** The name of a node with a space behind it; '' for a call that is not a node. */
  nameOf({ step, call }: { readonly step: number; readonly call: number }): string {
    const branch = step === this.#step ? this.#plan?.branches[call] : undefined;
    return branch === undefined ? '' : `${shortLine(branchId(branch, call), 32)}  `;
  }

  /** The keys of the calls that somebody gave other arguments, with those. */
  changed(nodes: Json | undefined): readonly (readonly [call: string, args: Json])[] {
    if (!isJsonObject(nodes)) return [];
    return (this.#plan?.branches ?? []).flatMap((branch, call) => {
      const edit = nodes[branchId(branch, call)];
      const args = isJsonObject(edit) ? edit['args'] : undefined;
      return args === undefined ? [] : [[`${this.#step}.${call}`, args] as const];
    });
  }
}
