/**
 * Turns the events of a turn, and of its tasks, into events of AG-UI. The same events always give the same result, so that a history, a late reader and a
 * live reader agree: nothing here waits, reads a clock or makes up an id.
 */
import {
  answerText,
  defined,
  type ErrorData,
  isJsonObject,
  type Json,
  messageWords,
  type RunEvent,
  type TaskPause,
} from '#core';
import { MessageFold } from './messages.ts';
import type { AgUiEvent, AgUiMessage } from './protocol.ts';
import { resultText, unapprovedText } from './results.ts';
import { RunTrack } from './run-track.ts';
import { StateFold } from './state.ts';

export interface MapperOptions {
  /** Makes the text about an error that a run has recorded. */
  readonly errorText: (error: ErrorData) => string;
  /** The part of the client's state that is not the turn's. */
  readonly state: { readonly [key: string]: Json };
}

/** How a turn has ended, or what it waits for. */
export type TurnEnd =
  | { readonly kind: 'finished'; readonly payload?: Json }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly error: ErrorData }
  | { readonly kind: 'paused'; readonly pauses: readonly TaskPause[] };

export class Mapper {
  readonly state: StateFold;
  readonly #options: MapperOptions;
  readonly #fold = new MessageFold();
  readonly #tracks = new Map<string, RunTrack>();
  /** Calls that wait for an approval, by the tokens of their pauses. */
  readonly #asked = new Map<string, string>();
  readonly #early: RunEvent<'token' | 'tool.input'>[] = [];
  #answer: RunEvent<'pause.resumed'> | undefined;
  #lastQuery = '';
  #end: TurnEnd | undefined;
  #isOutOfStep = false;

  constructor(options: MapperOptions) {
    this.#options = options;
    this.state = new StateFold(options.state);
  }

  /** The messages that the events so far add up to. */
  get messages(): readonly AgUiMessage[] {
    return this.#fold.messages;
  }

  get end(): TurnEnd | undefined {
    return this.#end;
  }

  /** The call whose approval this pause asks for. */
  callOf(token: string): string | undefined {
    return this.#asked.get(token);
  }

  /** Whether the client knows the run as a subagent. */
  isTask(run: string): boolean {
    return this.#tracks.get(run)?.isTask === true;
  }

  /** Whether a message of the client was taken back by its run, when the client did not hear of it. */
  isVoid({ id, role }: AgUiMessage): boolean {
    // A client keeps its messages of reasoning, which snapshots do not have.
    if (role !== 'assistant' || this.#fold.has(id)) return false;
    return [...this.#tracks.keys()].some((run) => id.startsWith(`${run}.`));
  }

  /** True once after something that was told was taken back or changed. Then the client needs all messages anew. */
  isOutOfStep(): boolean {
    const was = this.#isOutOfStep;
    this.#isOutOfStep = false;
    return was;
  }

  /** What the client is told of an event. */
  of(event: RunEvent): readonly AgUiEvent[] {
    // A late reader may hear streamed words before the recorded events that led to them. These wait.
    if ((event.type === 'token' || event.type === 'tool.input') && event.path === undefined && event.seq <= 1) {
      this.#early.push(event);
      return [];
    }
    if (this.#early.length === 0 || event.seq <= 1) return this.#of(event);
    const early = this.#early.splice(0).map((each) => ({ ...each, seq: event.seq }));
    return [event, ...early].flatMap((each) => this.#of(each));
  }

  #of(event: RunEvent): readonly AgUiEvent[] {
    this.state.add(event);
    const track = this.#trackOf(event);
    const made = [...this.#announced(event), ...this.#eventsOf(event, track), ...this.#activity(event)];
    for (const each of made) this.#fold.add(each);
    this.#correct(track);
    return made;
  }

  #correct(track: RunTrack): void {
    const { gone, changed } = track.corrections();
    for (const id of gone) this.#fold.dropCall(id);
    for (const { id, args } of changed) this.#fold.correctCall(id, args);
    if (gone.length + changed.length > 0) this.#isOutOfStep = true;
  }

  /** Opens what has to be open for the coming events, in a stream that begins in the middle of a turn. */
  reopened(): readonly AgUiEvent[] {
    const tracks = [...this.#tracks.values()];
    return [...tracks.flatMap((track) => track.announcedAgain()), ...tracks.flatMap((track) => track.steppedAgain())];
  }

  /** Closes everything that is open, before a stream ends. */
  closed(): readonly AgUiEvent[] {
    const tracks = [...this.#tracks.values()].reverse();
    const events = [...tracks.flatMap((track) => track.closed()), ...tracks.flatMap((track) => track.suspended())];
    for (const track of tracks) this.#correct(track);
    return events;
  }

  /** The turn goes on after it had ended or was paused. */
  goOn(): void {
    this.#end = undefined;
  }

  #trackOf({ identity: { run }, path = [] }: RunEvent): RunTrack {
    const known = this.#tracks.get(run);
    if (known !== undefined) return known;
    const place = path.at(-1);
    const above = path.at(-2)?.run;
    const owner = this.#tracks.get(above ?? this.#ownerOf(run) ?? '');
    const toolCallId = place && owner?.callIdIfMade(place.step, place.call);
    const made = new RunTrack(run, place && { ...place, ...defined({ above, toolCallId }) });
    this.#tracks.set(run, made);
    return made;
  }

  /** The run of the turn that has started a task: tasks are named after it. */
  #ownerOf(task: string): string | undefined {
    return [...this.#tracks.keys()].findLast((run) => task.startsWith(`${run}.`));
  }

  /** Announces tasks before anything else is told of them. */
  #announced({ path = [] }: RunEvent): readonly AgUiEvent[] {
    return path.flatMap(({ run }) => this.#tracks.get(run)?.announced() ?? []);
  }

  #eventsOf(event: RunEvent, track: RunTrack): readonly AgUiEvent[] {
    switch (event.type) {
      case 'turn.started':
        return this.#began(event);
      case 'control.applied':
        return this.#heard(event);
      case 'token':
        return track.token(event.step, event.channel, event.text, event.offset);
      case 'tool.input':
        return track.input(event);
      case 'token.reset':
        return this.#takeBack(track.reset(event.step));
      case 'planner.decision':
        return this.#told(track.decided(event));
      case 'tool.invoked':
        return track.called(event);
      case 'tool.approval_requested':
        this.#asked.set(event.token, track.callId(event.step, event.call));
        return [];
      case 'pause.resumed':
        this.#answer = event;
        return [];
      // A rejected call has ended: no other event comes for it.
      case 'tool.rejected': {
        const { verdict = 'reject', payload } = this.#answer?.token === event.token ? this.#answer : {};
        return this.#ended(track.callIdIfMade(event.step, event.call), unapprovedText(verdict, payload), track);
      }
      case 'tool.completed':
      case 'tool.failed':
      case 'tool.skipped':
        return this.#ended(
          track.callIdIfMade(event.step, event.call),
          resultText(event.outcome, this.#options.errorText),
          track,
        );
      case 'provider.invoked':
        return track.provided(event);
      case 'provider.completed':
        return this.#ended(track.chatCallId(event.callId), textOf(event.output), track);
      case 'tool.chunk':
        return this.#passing(event.chunk, track);
      case 'model.away':
        return event.retryAt === undefined ? [] : awayEvents('model', event.retryAt, track);
      case 'tool.away':
        return awayEvents(event.tool, event.retryAt, track);
      case 'message':
        return track.said(`${event.step}.${event.call}.message`, textOf(event.message));
      case 'planner.finish':
        return this.#finished(event, track);
      case 'planner.error':
        return this.#failed(event.error, track);
      case 'run.paused':
        this.#end = { kind: 'paused', pauses: event.pauses };
        return [];
      case 'run.reopened':
        if (!track.isTask) this.#end = undefined;
        return [];
      case 'task.completed':
      case 'task.cancelled':
        return this.#tracks.get(event.taskId)?.finished() ?? [];
      case 'task.failed':
        return (
          this.#tracks
            .get(event.taskId)
            ?.failed(this.#options.errorText({ code: event.code, message: '' }), event.code) ?? []
        );
      default:
        return [];
    }
  }

  /** The words with which the turn begins. The query of an interruption repeats those of the turn that it cuts off, which are told already. */
  #began({ query, messages, interrupts, succeeds }: RunEvent<'turn.started'>): readonly AgUiEvent[] {
    const before = this.#lastQuery;
    this.#lastQuery = query;
    const id = messages.at(-1);
    if (id === undefined || succeeds !== undefined || this.#fold.has(id)) return [];
    const prefix = `${before}\n\n`;
    return userWords(id, interrupts !== undefined && query.startsWith(prefix) ? query.slice(prefix.length) : query);
  }

  /** A message that came while the turn was under way. */
  #heard({ control: { turnMessage, payload = {} } }: RunEvent<'control.applied'>): readonly AgUiEvent[] {
    if (turnMessage === undefined || this.#fold.has(turnMessage.id)) return [];
    return userWords(turnMessage.id, messageWords(payload));
  }

  /** Corrects messages whose text is another than the one that was told. */
  #told({
    events,
    changed,
  }: {
    readonly events: readonly AgUiEvent[];
    readonly changed: readonly Changed[];
  }): readonly AgUiEvent[] {
    for (const { id, text } of changed) this.#fold.correct(id, text);
    if (changed.length > 0) this.#isOutOfStep = true;
    return events;
  }

  #takeBack({
    events,
    gone,
  }: {
    readonly events: readonly AgUiEvent[];
    readonly gone: readonly string[];
  }): readonly AgUiEvent[] {
    for (const id of gone) this.#fold.drop(id);
    if (gone.length > 0) this.#isOutOfStep = true;
    return events;
  }

  #ended(toolCallId: string | undefined, content: string, track: RunTrack): readonly AgUiEvent[] {
    if (toolCallId === undefined) return [];
    const messageId = `${toolCallId}.result`;
    // A node of a plan was carried out once more: its new result takes the place of the first.
    if (this.#fold.has(messageId)) {
      this.#fold.correct(messageId, content);
      this.#isOutOfStep = true;
      return [];
    }
    return [{ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool', ...track.tag }];
  }

  /** A value that a tool gives while it works. A data part keeps the name that the tool gives it. */
  #passing(chunk: Json, track: RunTrack): readonly AgUiEvent[] {
    const type = isJsonObject(chunk) ? chunk['type'] : undefined;
    if (isJsonObject(chunk) && typeof type === 'string' && type.startsWith('data-'))
      return [{ type: 'CUSTOM', name: type, value: chunk['data'] ?? null, ...track.tag }];
    return [{ type: 'CUSTOM', name: 'tool-chunk', value: chunk, ...track.tag }];
  }

  #finished({ reason, payload }: RunEvent<'planner.finish'>, track: RunTrack): readonly AgUiEvent[] {
    const answer = reason === 'goal' || reason === 'length' ? (answerText(payload) ?? '') : '';
    const events = [...track.answered(answer), ...track.closed()];
    if (track.isTask) return [...events, ...track.finished()];
    if (reason === 'cancelled') this.#end = { kind: 'cancelled' };
    // In the other cases another run continues the turn.
    else if (reason !== 'handed_over' && reason !== 'continued')
      this.#end = { kind: 'finished', ...defined({ payload }) };
    return events;
  }

  #failed(error: ErrorData, track: RunTrack): readonly AgUiEvent[] {
    const events = track.closed();
    if (track.isTask) return [...events, ...track.failed(this.#options.errorText(error), error.code)];
    this.#end = { kind: 'failed', error };
    return events;
  }

  /** The plan as an activity beside the messages: first the whole plan, then its changes. */
  #activity(event: RunEvent): readonly AgUiEvent[] {
    const { plan } = this.state;
    if (plan === undefined || event.path !== undefined || !PLAN_NEWS.has(event.type)) return [];
    const of = { messageId: `${event.identity.run}.${plan.step}.plan`, activityType: 'plan' };
    const isFirst = event.type === 'planner.decision';
    if (isFirst && event.plan === undefined) return [];
    if (isFirst) return [{ type: 'ACTIVITY_SNAPSHOT', ...of, content: { nodes: plan.nodes } }];
    const { call, step } = event as RunEvent<'tool.completed'>;
    const node = plan.nodes[call];
    if (step !== plan.step || node === undefined) return [];
    const op = event.type === 'tool.invoked' ? 'add' : 'replace';
    return [{ type: 'ACTIVITY_DELTA', ...of, patch: [{ op, path: `/nodes/${call}`, value: node }] }];
  }
}

export interface Changed {
  readonly id: string;
  readonly text: string;
}

const PLAN_NEWS: ReadonlySet<RunEvent['type']> = new Set([
  'planner.decision',
  'tool.invoked',
  'tool.completed',
  'tool.failed',
  'tool.rejected',
  'tool.skipped',
]);

function userWords(messageId: string, text: string): readonly AgUiEvent[] {
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'user' },
    ...(text === '' ? [] : [{ type: 'TEXT_MESSAGE_CONTENT' as const, messageId, delta: text }]),
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** It is tried again at that time. The error is for operators. */
function awayEvents(what: string, retryAt: number, track: RunTrack): readonly AgUiEvent[] {
  return [{ type: 'CUSTOM', name: 'data-away', value: { what, retryAt }, ...track.tag }];
}
