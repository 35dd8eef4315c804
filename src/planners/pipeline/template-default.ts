/** The templates that every prompt store begins with. Their variables are those of `planVariables`. */
import { aboutFrames } from '#prompt';
import type { PromptTemplate } from './template.ts';

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
