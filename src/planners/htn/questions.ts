/** The helpers of the planner for one move: their answers, and the usage of the answers. */
import {
  addUsage,
  defined,
  describeThrown,
  type MoveNotes,
  PilotageError,
  type Remark,
  type RunView,
  readUsage,
  type Usage,
} from '#core';
import { GOAL, type HtnTask } from './domain.ts';
import type { HtnStep } from './work.ts';

/** What an answer took, and what there is to tell of it. Both go into the move: budgets count it, events tell it. */
export interface AnswerNotes {
  readonly usage?: Usage;
  readonly remarks?: readonly Remark[];
}

export interface HtnChoice extends AnswerNotes {
  /** Absent: none was chosen. */
  readonly method?: string;
}

export interface HtnFilling extends AnswerNotes {
  /** In their order, perhaps none. */
  readonly steps: readonly HtnStep[];
}

/** Names one of the methods, all of which apply. */
export type ChooseMethod = (
  task: HtnTask,
  methods: readonly string[],
  run: RunView,
  signal: AbortSignal,
) => Promise<string | HtnChoice>;

/** Gives the steps of a task that has an empty list of methods. */
export type FillLeaf = (task: HtnTask, run: RunView, signal: AbortSignal) => Promise<readonly HtnStep[] | HtnFilling>;

export interface Helpers {
  readonly choose?: ((task: HtnTask, methods: readonly string[], run: RunView) => ReturnType<ChooseMethod>) | undefined;
  readonly fill?: ((task: HtnTask, run: RunView) => ReturnType<FillLeaf>) | undefined;
}

/** How many characters are kept of an answer that names no method. */
const MAX_ANSWER_CHARS = 200;

export class Questions {
  readonly #helpers: Helpers;
  readonly #run: RunView;
  readonly #signal: AbortSignal;
  readonly #remarks: Remark[] = [];
  #usage: Usage | undefined;

  constructor(helpers: Helpers, run: RunView, signal: AbortSignal) {
    this.#helpers = helpers;
    this.#run = run;
    this.#signal = signal;
  }

  /** For the move. */
  get notes(): Pick<MoveNotes, 'usage' | 'remarks'> {
    return {
      ...defined({ usage: this.#usage }),
      ...(this.#remarks.length === 0 ? {} : { remarks: this.#remarks }),
    };
  }

  /** What was asked in this move leaves nothing of the run's money or tokens. */
  get isSpent(): boolean {
    const { costMicroUsdLeft = Number.POSITIVE_INFINITY, tokensLeft = Number.POSITIVE_INFINITY } = this.#left.budget;
    return this.#usage !== undefined && (costMicroUsdLeft <= 0 || tokensLeft <= 0);
  }

  /** The run as the next question finds it: less is left of its budget than when the move began. */
  get #left(): RunView {
    if (this.#usage === undefined) return this.#run;
    const { budget } = this.#run;
    const { costMicroUsd = 0, inputTokens = 0, outputTokens = 0 } = this.#usage;
    const less = (left: number | undefined, used: number): number | undefined =>
      left === undefined ? undefined : Math.max(0, left - used);
    const costMicroUsdLeft = less(budget.costMicroUsdLeft, costMicroUsd);
    const tokensLeft = less(budget.tokensLeft, inputTokens + outputTokens);
    return { ...this.#run, budget: { ...budget, ...defined({ costMicroUsdLeft, tokensLeft }) } };
  }

  /** What was answered, which need not be the name of a method; empty: nothing. @throws as `choose`, with what was asked. */
  async choose(task: HtnTask, methods: readonly string[]): Promise<string> {
    const { choose } = this.#helpers;
    const given = await this.#ask(
      () => choose?.(task, methods, this.#left),
      `\`choose\` failed for ${named(task)}, asked for one of ${methods.join(', ')}`,
    );
    if (typeof given !== 'string') this.#note(given);
    const answer: unknown = typeof given === 'string' ? given : given?.method;
    if (typeof answer !== 'string') return '';
    return methods.includes(answer) ? answer : answer.slice(0, MAX_ANSWER_CHARS);
  }

  /** @throws as `fill`, with what was asked; PilotageError `htn_invalid_decomposition` for a value that is not a list. */
  async fill(task: HtnTask): Promise<readonly HtnStep[]> {
    const { fill } = this.#helpers;
    const given = await this.#ask(() => fill?.(task, this.#left), `\`fill\` failed for ${named(task)}`);
    if (isSteps(given)) return given;
    this.#note(given);
    const steps: unknown = given?.steps;
    if (isSteps(steps)) return steps;
    const message = `\`fill\` must return a list of steps for ${named(task)}; if there is nothing to do, return an empty list.`;
    throw new PilotageError('htn_invalid_decomposition', message, { data: { task: task[0] } });
  }

  async #ask<T>(question: () => Promise<T> | undefined, problem: string): Promise<T | undefined> {
    try {
      return await question();
    } catch (cause) {
      // A question that was stopped may say what it has used.
      if (this.#signal.aborted) throw cause;
      if (PilotageError.is(cause)) {
        throw new PilotageError(cause.code, `${problem}: ${cause.message}`, {
          ...defined({ data: cause.data }),
          cause,
        });
      }
      throw new PilotageError('planner_failed', `${problem}: ${describeThrown(cause)}`, { cause });
    }
  }

  #note(answer: AnswerNotes | undefined): void {
    this.#remarks.push(...(answer?.remarks ?? []));
    if (answer?.usage === undefined) return;
    // One by one: in a sum a number that cannot be is hidden by the others.
    const { usage, wrong } = readUsage(answer.usage);
    this.#usage = addUsage(this.#usage, usage);
    if (wrong === undefined) return;
    throw new PilotageError(
      'htn_invalid_decomposition',
      `The usage of an answer is not valid: ${wrong}. Give whole numbers from 0 up.`,
    );
  }
}

function isSteps(given: unknown): given is readonly HtnStep[] {
  return Array.isArray(given);
}

function named(task: HtnTask): string {
  return task[0] === GOAL ? `the goal ${String(task[1])}` : `the task ${task[0]}`;
}
