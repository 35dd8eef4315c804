/** Keeps track of what a client was told of one run: of a run of the turn, or of a task, which the client knows as a subagent. */
import { FINISH_TOOL, type Json, MESSAGE_TOOL, type RunEvent, type TaskStep } from '#core';
import { chatCallId } from '#messages';
import type { AgUiEvent } from './protocol.ts';
import { type Channel, Spoken } from './spoken.ts';

export interface SpawnedAt extends TaskStep {
  /** The task that has started this one, if a task has. */
  readonly above?: string;
  /** The call that has started the task, if a call has. */
  readonly toolCallId?: string;
}

interface Step {
  readonly step: number;
  readonly text: Spoken;
  readonly reasoning: Spoken;
  /** The decision of the step is recorded: nothing of the step can be taken back any more. */
  isDecided: boolean;
  /** The decision has words. */
  hasWords: boolean;
  /** The arguments of unfinished calls as far as they were told, by the ids of the calls. */
  readonly inputs: Map<string, string>;
}

/** The events of a decision, and the messages whose text is another than the one that was told. */
interface DecisionEvents {
  readonly events: readonly AgUiEvent[];
  readonly changed: readonly { readonly id: string; readonly text: string }[];
}

const PLAN_TOOLS: readonly string[] = [MESSAGE_TOOL, FINISH_TOOL];

export class RunTrack {
  readonly #run: string;
  readonly #spawned: SpawnedAt | undefined;
  /** The ids of its calls, by step and index. */
  readonly #calls = new Map<string, string>();
  #now: Step | undefined;
  #isStepOpen = false;
  #life: 'new' | 'open' | 'over' = 'new';
  #gone: string[] = [];
  #changed: { id: string; args: string }[] = [];

  constructor(run: string, spawned?: SpawnedAt) {
    this.#run = run;
    this.#spawned = spawned;
  }

  get isTask(): boolean {
    return this.#spawned !== undefined;
  }

  /** Marks the events of a task. */
  get tag(): { readonly subagentRunId?: string } {
    return this.isTask ? { subagentRunId: this.#run } : {};
  }

  /** The id of a call as the client knows it. */
  callId(step: number, call: number): string {
    return this.callIdIfMade(step, call) ?? `${this.#run}.${step}.${call}`;
  }

  /** The same for the id that the call has in its run. */
  chatCallId(own: string): string {
    return chatCallId(this.#run, own);
  }

  callIdIfMade(step: number, call: number): string | undefined {
    return this.#calls.get(`${step}.${call}`);
  }

  /** Announces a task, once. */
  announced(): readonly AgUiEvent[] {
    if (this.#spawned === undefined || this.#life !== 'new') return [];
    const { agent, above, toolCallId } = this.#spawned;
    this.#life = 'open';
    const parents = {
      ...(above !== undefined && { parentSubagentRunId: above }),
      ...(toolCallId !== undefined && { parentToolCallId: toolCallId }),
    };
    return [{ type: 'SUBAGENT_STARTED', subagentRunId: this.#run, name: agent, ...parents }];
  }

  /** Announces a task that goes on again, in a new stream. */
  announcedAgain(): readonly AgUiEvent[] {
    if (this.#life !== 'open') return [];
    this.#life = 'new';
    return this.announced();
  }

  steppedAgain(): readonly AgUiEvent[] {
    if (!this.#isStepOpen || this.#now === undefined) return [];
    return [{ type: 'STEP_STARTED', stepName: stepName(this.#now.step), ...this.tag }];
  }

  /** Closes the open messages and the open step. */
  closed(): readonly AgUiEvent[] {
    const step = this.#now;
    if (step === undefined || !this.#isStepOpen) return [];
    this.#isStepOpen = false;
    const last: AgUiEvent = { type: 'STEP_FINISHED', stepName: stepName(step.step), ...this.tag };
    return [...step.reasoning.close(), ...step.text.close(), ...this.#unmade(step), last];
  }

  /** Ends calls whose arguments were streamed and that were not made. */
  #unmade({ inputs }: Step): readonly AgUiEvent[] {
    const ids = [...inputs.keys()];
    inputs.clear();
    this.#gone.push(...ids);
    return ids.map((toolCallId) => ({ type: 'TOOL_CALL_END', toolCallId, ...this.tag }));
  }

  /** The calls that were told and not made, and the calls whose arguments have changed. Each is given once. */
  corrections(): { readonly gone: readonly string[]; readonly changed: readonly { id: string; args: string }[] } {
    const found = { gone: this.#gone, changed: this.#changed };
    if (this.#gone.length > 0) this.#gone = [];
    if (this.#changed.length > 0) this.#changed = [];
    return found;
  }

  /** The task goes on after the end of this stream. */
  suspended(): readonly AgUiEvent[] {
    if (this.#life !== 'open') return [];
    return [{ type: 'SUBAGENT_FINISHED', subagentRunId: this.#run, outcome: { type: 'suspended' } }];
  }

  finished(): readonly AgUiEvent[] {
    if (this.#life !== 'open') return [];
    this.#life = 'over';
    return [...this.closed(), { type: 'SUBAGENT_FINISHED', subagentRunId: this.#run, outcome: { type: 'success' } }];
  }

  failed(message: string, code: string): readonly AgUiEvent[] {
    if (this.#life !== 'open') return [];
    this.#life = 'over';
    return [...this.closed(), { type: 'SUBAGENT_ERROR', subagentRunId: this.#run, message, code }];
  }

  token(step: number, channel: Channel, text: string, offset: number): readonly AgUiEvent[] {
    const opening = this.#at(step);
    const now = this.#now as Step;
    const before = channel === 'text' ? now.reasoning.close() : [];
    return [...opening, ...before, ...now[channel].piece(text, offset)];
  }

  /** A part of a call's arguments. */
  input({ step, callId: own, tool, text, offset }: RunEvent<'tool.input'>): readonly AgUiEvent[] {
    const callId = this.chatCallId(own);
    const opening = this.#at(step);
    const { reasoning, text: said, inputs } = this.#now as Step;
    const shown = inputs.get(callId);
    const before = shown ?? '';
    // What follows a gap is told with the whole arguments.
    const delta = offset > before.length ? '' : text.slice(before.length - offset);
    inputs.set(callId, `${before}${delta}`);
    const of = { toolCallId: callId, ...this.tag };
    return [
      ...opening,
      ...reasoning.close(),
      ...said.close(),
      ...(shown === undefined ? [this.#opened(callId, tool, step)] : []),
      ...(delta === '' ? [] : [{ type: 'TOOL_CALL_ARGS' as const, ...of, delta }]),
    ];
  }

  /** Takes back what was said in the step. @returns the events, and the ids of the messages that are gone. */
  reset(step: number): { readonly events: readonly AgUiEvent[]; readonly gone: readonly string[] } {
    const now = this.#now;
    if (now?.step !== step || now.isDecided) return { events: [], gone: [] };
    const events = [...now.reasoning.close(), ...now.text.close(), ...this.#unmade(now)];
    const gone = [now.reasoning, now.text].flatMap(({ id, shown }) => (shown === '' ? [] : [id]));
    this.#now = this.#fresh(step);
    return { events, gone };
  }

  decided({ step, text = '', reasoningTrace = '' }: RunEvent<'planner.decision'>): DecisionEvents {
    const opening = this.#at(step);
    const now = this.#now as Step;
    now.isDecided = true;
    now.hasWords = text !== '';
    const events: AgUiEvent[] = [...opening];
    const changed: { id: string; text: string }[] = [];
    for (const [spoken, whole] of [
      [now.reasoning, reasoningTrace],
      [now.text, text],
    ] as const) {
      // A reply whose words are not recorded keeps those that were streamed.
      const said = whole === '' ? spoken.close() : spoken.whole(whole);
      events.push(...(said ?? spoken.close()));
      if (said === undefined) changed.push({ id: spoken.id, text: whole });
    }
    return { events, changed };
  }

  called({ step, call, tool, args, callId }: RunEvent<'tool.invoked'>): readonly AgUiEvent[] {
    const opening = this.#at(step);
    if (PLAN_TOOLS.includes(tool)) return opening;
    const id = this.chatCallId(callId ?? `${this.#run}.${step}.${call}`);
    this.#calls.set(`${step}.${call}`, id);
    return [...opening, ...this.#call(id, tool, step, args)];
  }

  /** A call that the provider of the model has carried out. */
  provided({ step, callId, tool, input }: RunEvent<'provider.invoked'>): readonly AgUiEvent[] {
    return [...this.#at(step), ...this.#call(this.chatCallId(callId), tool, step, input)];
  }

  /** Tells a message that is not of the model. */
  said(place: string, text: string): readonly AgUiEvent[] {
    const spoken = new Spoken(`${this.#run}.${place}`, 'text', this.tag);
    return spoken.whole(text) ?? [];
  }

  /** Tells the answer with which the run ends, unless it was told already. */
  answered(answer: string): readonly AgUiEvent[] {
    const now = this.#now;
    if (answer === '' || now?.text.shown.includes(answer) === true) return [];
    const own = now === undefined || now.hasWords ? undefined : now.text.whole(answer);
    return own ?? this.said(`${now?.step ?? 0}.answer`, answer);
  }

  #call(toolCallId: string, tool: string, step: number, args: Json): readonly AgUiEvent[] {
    const of = { toolCallId, ...this.tag };
    const whole = typeof args === 'string' ? args : JSON.stringify(args);
    const shown = this.#now?.inputs.get(toolCallId);
    this.#now?.inputs.delete(toolCallId);
    if (shown === undefined) {
      const said: AgUiEvent = { type: 'TOOL_CALL_ARGS', ...of, delta: whole };
      return [this.#opened(toolCallId, tool, step), said, { type: 'TOOL_CALL_END', ...of }];
    }
    // The arguments may have been repaired, or a part of the stream was missed.
    if (!isSameJson(shown, whole)) this.#changed.push({ id: toolCallId, args: whole });
    return [{ type: 'TOOL_CALL_END', ...of }];
  }

  #opened(toolCallId: string, toolCallName: string, step: number): AgUiEvent {
    return { type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: `${this.#run}.${step}`, ...this.tag };
  }

  /** Opens this step, and closes the one before. */
  #at(step: number): readonly AgUiEvent[] {
    if (this.#now?.step === step && this.#isStepOpen) return [];
    const before = this.closed();
    if (this.#now?.step !== step) this.#now = this.#fresh(step);
    this.#isStepOpen = true;
    return [...before, { type: 'STEP_STARTED', stepName: stepName(step), ...this.tag }];
  }

  #fresh(step: number): Step {
    const id = `${this.#run}.${step}`;
    return {
      step,
      text: new Spoken(id, 'text', this.tag),
      reasoning: new Spoken(`${id}.reasoning`, 'reasoning', this.tag),
      isDecided: false,
      hasWords: false,
      inputs: new Map(),
    };
  }
}

function stepName(step: number): string {
  return `step ${step}`;
}

/** Whether two texts are the same JSON. The text of a model may have other spaces. */
function isSameJson(one: string, other: string): boolean {
  if (one === other) return true;
  try {
    return JSON.stringify(JSON.parse(one)) === other;
  } catch {
    return false;
  }
}
