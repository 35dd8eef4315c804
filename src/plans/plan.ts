/**
 * A plan as a model or a program writes it, and the one form in which it is checked, carried out and shown. The
 * interfaces are those of the agentsdk proposal; `nodes` with `edges` and a list of `steps` are both accepted.
 */
import type { Json, JsonObject } from '#core';

export type PlanStepType = 'tool' | 'message' | 'finish' | 'internal';

export interface PlanStep {
  /** Unique in its plan. */
  readonly id: string;
  readonly type: PlanStepType;
  /** For a `tool` step: the name of the tool. */
  readonly toolId?: string;
  /**
   * The arguments of a tool, the words of a message, or the result of a finish. References
   * `{ "$from": "<step id>", "path": "<JSON Pointer>" }` anywhere inside stand for the value of an earlier step, which then comes first.
   */
  readonly input?: Json;
  readonly meta?: JsonObject;
  /**
   * Ids of steps that come before this step, in addition to edges. In a list, the step then does not wait for the step written
   * before it.
   */
  readonly after?: readonly string[];
  /** Like `after`, but the step runs also when such a step was skipped: its condition did not hold, or somebody took it out. */
  readonly behind?: readonly string[];
  /** The step runs only if the value of the named step equals this. The named step comes before it. */
  readonly when?: { readonly step: string; readonly equals: Json };
  /**
   * For a step with a `once` or `keyed` tool, in a plan that is made after the run has done something: the step is carried out
   * also when an earlier plan has done the same. Otherwise it takes the outcome of that.
   */
  readonly again?: boolean;
}

/** Exactly one of `nodes` and `steps`. */
export interface Plan {
  readonly planId?: string;
  readonly nodes?: Readonly<Record<string, PlanStep>>;
  /**
   * Without edges, a chain: each step comes after the one written before it, unless it has `after` (with an empty list it begins at
   * once). A reference adds a need and takes none away. A message comes after all steps written before it, and a finish without
   * `after` and `when` comes after all other steps.
   */
  readonly steps?: readonly PlanStep[];
  /** For each id, the ids of the steps that come after it. */
  readonly edges?: Readonly<Record<string, readonly string[]>>;
}

/** A step of a checked plan: `after` and `behind` name every step that comes before it, each once. */
export interface ReadyStep extends PlanStep {
  readonly after: readonly string[];
}

export interface ReadyPlan {
  readonly planId: string;
  /** In an order in which each step stands behind those before it; otherwise as they were written. */
  readonly steps: readonly ReadyStep[];
}

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
