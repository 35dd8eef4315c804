/** What is told of the making of a plan, a line each. */
import { type ErrorData, isJsonObject, type PlanFault, type PlanTry, type RunEvent } from '#core';
import { type Line, line } from './line.ts';
import { count, duration, shortLine } from './text.ts';

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
  const shortened = cut === 0 ? '' : `; ${cut.toLocaleString('en')} shortened or left out`;
  const size = `about ${tokens.toLocaleString('en')} tokens`;
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
