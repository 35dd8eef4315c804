/** Templates of prompts: `{{name}}` stands for a variable. A value is put in as it is, and never read for more variables. */
import { type JsonObject, PilotageError } from '#core';

export interface PromptTemplate {
  readonly id: string;
  /** From 1, and never given twice. */
  readonly version: number;
  readonly text: string;
  /** Variables without which it is not rendered. */
  readonly requiredVars: readonly string[];
  readonly metadata?: JsonObject;
  readonly author?: string;
  /** When this version was made. Milliseconds since the epoch. */
  readonly at: number;
}

export interface TemplateDraft {
  readonly id: string;
  readonly text: string;
  /** Default: every variable that the text names. */
  readonly requiredVars?: readonly string[];
  readonly metadata?: JsonObject;
  readonly author?: string;
}

/** By the name of the variable. `undefined` is as good as none. */
export type TemplateVars = { readonly [name: string]: string | number | boolean | undefined };

export interface ScannedText {
  /** Each once, in the order of the text. */
  readonly variables: readonly string[];
  readonly errors: readonly string[];
}

const OPENING = '{{';
const PLACEHOLDER = /\{\{\s*([A-Za-z_][\w.]*)\s*\}\}/g;
const PLACEHOLDER_HERE = new RegExp(PLACEHOLDER.source, 'y');

export function scanText(text: string): ScannedText {
  const variables = new Set<string>();
  const errors: string[] = [];
  let at = text.indexOf(OPENING);
  while (at >= 0) {
    PLACEHOLDER_HERE.lastIndex = at;
    const name = PLACEHOLDER_HERE.exec(text)?.[1];
    if (name === undefined) errors.push(`at character ${at} the braces name no variable; write {{name}}`);
    else variables.add(name);
    at = text.indexOf(OPENING, name === undefined ? at + OPENING.length : PLACEHOLDER_HERE.lastIndex);
  }
  return { variables: [...variables], errors };
}

/** @throws PilotageError `template_variable_missing` naming all that are required and not given. */
export function assertGiven({ id, version, requiredVars }: PromptTemplate, vars: TemplateVars): void {
  const missing = requiredVars.filter((name) => givenFor(vars, name) === undefined);
  if (missing.length === 0) return;
  throw new PilotageError(
    'template_variable_missing',
    `The template ${JSON.stringify(id)}, version ${version}, needs ${missing.join(', ')}. Give a value for each.`,
    { data: { template: id, version, missing } },
  );
}

/** A variable without a value leaves nothing behind. */
export function fillText(text: string, vars: TemplateVars): string {
  return text.replace(PLACEHOLDER, (_, name: string) => String(givenFor(vars, name) ?? ''));
}

function givenFor(vars: TemplateVars, name: string): string | number | boolean | undefined {
  return Object.hasOwn(vars, name) ? vars[name] : undefined;
}
