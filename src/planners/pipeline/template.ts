/** Templates of prompts: `{{name}}` stands for a variable, whose value is put in as it is, and never read for more variables. */
import { type JsonObject, PilotageError } from '#core';
import { aboutFrames } from '#prompt';

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

// The templates that every prompt store begins with. Their variables are those of `planVariables`.

const REQUIRED = ['goal', 'toolList', 'limits', 'schema', 'example'];

const TASK = `You are a planner. You make the plan; a program carries it out. Your part ends with the plan: you do not see the
results before you plan, so say where they are to be used by reference.`;

const PARTS = `<framed_text>
${aboutFrames('text')}
</framed_text>

The only tools there are, by id. \`arguments\` is the JSON Schema that the \`input\` of a step with this tool must fit.
{{toolList}}

<plan_steps>
- \`tool\` calls the tool \`toolId\` with \`input\`. \`message\` says the text \`input\` to the user. \`finish\` ends the plan, with
  \`input\` as the answer to the goal: end every plan with one. {{internal}}
- {"$from": "<step id>", "path": "<JSON Pointer>"}, anywhere in \`input\`, stands for the result of that step, or for the part of
  it at the path. Use it for every value that only comes to be while the plan runs, and never make such a value up.
- {"$literal": <value>}, in \`input\`, is the value as it stands: write it around what has a key "$from" or "$literal" of its own.
- Steps run one after the other, in the order written. A step with \`after\`, a list of ids, waits for those instead, and with an empty
  list for nothing: steps that do not wait for each other run at the same time. Each waits besides for the steps that it refers to.
- A \`message\` without \`after\` comes after all steps before it, and a \`finish\` after all steps.
- \`when\`: {"step": "<step id>", "equals": <value>}: the step runs only if the result of that step is this value. If it is not, the
  steps written behind it run all the same, but for those that refer to it or name it in \`after\`.
- Take the fewest steps that reach the goal. If no tool can bring a part of it about, say so in the answer.
</plan_steps>

{{limits}}

`;

const GIVEN = `The goal:
{{goal}}

{{context}}{{done}}`;

const AS_JSON = `<plan_format>
The plan is one JSON object that fits this JSON Schema:
{{schema}}

An example. Its tools are made up, and so is its goal:
{{example}}
</plan_format>

`;

const AS_LINES = `<plan_format>
Write NDJSON: each line is one JSON object, without line breaks inside it. Steps come in an order in which each stands after those
that it waits for: each may be run as soon as its line is complete.
- {"type":"step","step":{…}}: one step. It fits this JSON Schema:
{{schema}}
- {"type":"reasoning","text":"…"}: a short remark for whoever looks on. Only if it helps.
- {"type":"finish"}: the last line, which says that the plan is whole.

An example. Its tools are made up, and so is its goal:
{{example}}
</plan_format>

`;

const TEXTS: Readonly<Record<string, string>> = {
  plan: `${TASK}\n\n${PARTS}${AS_JSON}${GIVEN}Return exactly one JSON object, the plan, and nothing else: no words around it, no fence. If you have the function submit_plan, call it once with the plan as its arguments.`,
  'plan-ndjson': `${TASK}\n\n${PARTS}${AS_LINES}${GIVEN}Return the lines of the plan and nothing else: no words between them, no fence.`,
};

export const DEFAULT_TEMPLATES: readonly PromptTemplate[] = Object.entries(TEXTS).map(([id, text]) =>
  Object.freeze({ id, version: 1, text, requiredVars: REQUIRED, author: 'pilotage', at: 0 }),
);
