/** The schemas of a plan: the one that a model is shown, and the one by which what it wrote is read. */
import type { JsonObject } from '#core';
import type { PlanStepType } from './plan.ts';

export const STEP_TYPES: readonly PlanStepType[] = ['tool', 'message', 'finish', 'internal'];

const REFERENCE = '{"$from": "<step id>", "path": "<JSON Pointer>"}';
const IDS: JsonObject = { type: 'array', items: { type: 'string' } };

/** What a model is shown, and kept to where it can be: the form with a list of steps. */
export const PLAN_SCHEMA: JsonObject = {
  type: 'object',
  required: ['planId', 'steps'],
  additionalProperties: false,
  properties: {
    planId: { type: 'string' },
    steps: {
      type: 'array',
      minItems: 1,
      description:
        'They run one after the other, as they are written. A step with `after` does not wait for the one before it, but for those ' +
        'that it names; with an empty list it runs at once. Each waits for the steps that it refers to besides.',
      items: {
        type: 'object',
        required: ['id', 'type'],
        additionalProperties: false,
        properties: {
          id: { type: 'string', minLength: 1, description: 'Unique in the plan.' },
          type: { enum: STEP_TYPES },
          toolId: { type: 'string', description: 'Of a `tool` step: the name of the tool.' },
          input: {
            description:
              'The arguments of a tool, the words of a message, the result of a finish. Anywhere in it ' +
              `${REFERENCE} stands for the result of an earlier step.`,
          },
          meta: { type: 'object' },
          after: {
            ...IDS,
            description: 'Ids of the steps that come before this one, in place of the one written before it.',
          },
          when: {
            type: 'object',
            description: 'The step is run only if the result of that step equals this.',
            required: ['step', 'equals'],
            additionalProperties: false,
            properties: { step: { type: 'string' }, equals: {} },
          },
          again: {
            type: 'boolean',
            description:
              'A step that does what is done already, with the same input, takes that result; true: it is done once more.',
          },
        },
      },
    },
  },
};

/** Both forms. What has a fault code of its own (ids, types, tools) is left to the checks behind it. */
const GIVEN_STEP: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    type: { type: 'string' },
    toolId: { type: 'string' },
    meta: { type: 'object' },
    after: IDS,
    behind: IDS,
    when: { type: 'object', required: ['step', 'equals'], properties: { step: { type: 'string' } } },
    again: { type: 'boolean' },
  },
  // Other keys are a model's own notes. But an order that nobody reads would be broken in silence.
  patternProperties: { '^(depends|dependenc|needs|requires|prerequisite|condition)': false },
};

export const GIVEN_PLAN_SCHEMA: JsonObject = {
  type: 'object',
  oneOf: [{ required: ['steps'] }, { required: ['nodes'] }],
  properties: {
    planId: { type: 'string', minLength: 1 },
    steps: { type: 'array', items: GIVEN_STEP },
    nodes: { type: 'object', additionalProperties: GIVEN_STEP },
    edges: { type: 'object', additionalProperties: IDS },
  },
};
