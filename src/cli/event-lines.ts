/** Events as lines for people. The live progress and the timeline of `inspect` show the same. */

import {
  type Caller,
  type CallWait,
  type Control,
  type ControlType,
  type ErrorData,
  isJsonObject,
  isTaskTool,
  type Json,
  MESSAGE_TOOL,
  messageFiles,
  type Outcome,
  type OwnRemarkType,
  type PartialReply,
  type RunEvent,
  type Source,
  type Usage,
  type WaitEnd,
  wordsIn,
} from '#core';
import type { PlanView } from '#state';
import { approvalLine } from './approval-lines.ts';
import { about } from './pause-lines.ts';
import { faultLines, type PlanSeen, planEventLines } from './plan-lines.ts';
import { toolText } from './plan-text.ts';
import { type Line, line, type Tone } from './terminal.ts';
import {
  count,
  dollars,
  duration,
  fileText,
  grouped,
  harmless,
  shortArgs,
  shortLine,
  terminalJson,
  tokenWords,
} from './text.ts';
import { undoLines } from './undo-lines.ts';

export class EventLines {
  /** What the calls of the step under way were asked. */
  readonly #args = new Map<string, string>();
  /** Arguments that came with an approval, by the token of its pause. */
  readonly #edits = new Map<string, string>();
  /** What a control said that was told last. When it is an answer, it is not told twice. */
  #said = '';
  readonly #texts: boolean;
  readonly #plan: PlanSeen;

  constructor(options: {
    /** What the model says beside its calls is shown, too: not where it is streamed. */
    readonly texts: boolean;
    /** Is told of the entries that the events come from, so that the nodes of plans have their names. */
    readonly plan: PlanSeen;
  }) {
    this.#texts = options.texts;
    this.#plan = options.plan;
  }

  of(event: RunEvent): Line[] {
    switch (event.type) {
      case 'run.started':
        return [
          line('strong', `▶ ${event.identity.run}  ${shortLine(event.agent, 60)}: ${shortLine(event.query, 160)}`),
        ];
      case 'turn.started':
        return event.continues.length === 0
          ? []
          : [line('quiet', `  goes on from ${count(event.continues.length, 'earlier turn', 'earlier turns')}`)];
      case 'run.erased':
        return [line('bad', `  its content was erased on ${new Date(event.erasedAt).toISOString()}`)];
      case 'planner.decision':
        this.#args.clear();
        return decisionLines(event, this.#plan, this.#texts);
      case 'planner.files':
        return event.files.map((file) => line('plain', `  ◇ ${fileText(file)}`));
      case 'tool.invoked':
        this.#args.set(`${event.step}.${event.call}`, shortArgs(event.args));
        return [];
      case 'tool.completed':
        // What a task came to is told where the task ends, and what is said to the user where it is said.
        return isOfTask(event.tool) || event.tool === MESSAGE_TOOL ? [] : [this.#callLine(event)];
      case 'tool.failed':
      case 'tool.skipped':
        return [this.#callLine(event)];
      case 'control.applied':
        // An answer is told where the pause is resumed by it.
        if (event.control.type in ANSWERS) return [];
        this.#said = saidToPlanner(event.control);
        return [line('strong', `  ${controlText(event)}${this.#said}`)];
      case 'control.rejected':
        return [line('bad', `  ${controlText(event)} was refused: ${shortLine(event.error.message, 200)}`)];
      case 'control.undelivered':
        return [line('bad', `  ${controlText(event)} came too late: the run was ending`)];
      case 'pause.requested':
        return [line('strong', pauseText(event))];
      case 'pause.resumed':
        // It was closed with its call, of which the next line says what it came to.
        if (event.verdict === 'superseded' && event.payload?.['control'] === undefined) return [];
        if (event.args !== undefined) this.#edits.set(event.token, shortArgs(event.args));
        for (const [call, args] of this.#plan.changed(event.nodes)) this.#args.set(call, shortArgs(args));
        return [line('strong', `${answerText(event)}${this.#answerWords(event)}`)];
      case 'tool.approved': {
        const edited = this.#edits.get(event.token);
        if (edited !== undefined) this.#args.set(`${event.step}.${event.call}`, edited);
        return [];
      }
      case 'planner.max_steps_exceeded':
        return [line('bad', `! all ${count(event.maxSteps, 'step')} are used up`)];
      case 'planner.finish':
        return [
          line(event.reason === 'goal' ? 'good' : 'bad', `■ finished: ${event.reason}${endWords(event)}`),
          ...undoLines(event.metadata),
        ];
      case 'planner.error':
        return [
          line('bad', `✗ failed: ${event.error.code}: ${shortLine(event.error.message, 300)}`),
          ...faultLines(event.error),
          ...undoLines(event.error.data),
        ];
      case 'message':
        return [line('strong', `  ✎ ${this.#plan.nameOf(event)}${saidText(event.message)}`)];
      case 'plan.retrieved':
      case 'plan.try':
      case 'plan.verified':
      case 'plan.fallback':
      case 'plan.grown':
        return planEventLines(event);
      case 'tool.held_back':
        return [line('quiet', `  ${heldText(event)}`)];
      case 'tool.chunk':
        return [line('quiet', `  … ${this.#chunkSource(event)}  ${shortLine(plainText(event.chunk), 200)}`)];
      case 'tool.spent':
        return [line('quiet', `  … ${spentText(event)}`)];
      case 'tool.late':
        return [line('quiet', `  late result of ${shortLine(event.tool, 60)} was dropped`)];
      case 'handle.opened':
        return [line('quiet', `  ${shortLine(event.handle, 60)} was opened${event.opening === 1 ? '' : ' anew'}`)];
      case 'handle.lost':
        return [line('bad', `! ${shortLine(event.handle, 60)} is gone, with all that it kept`)];
      case 'token.reset':
        return [line('quiet', '  the answer begins anew')];
      case 'planner.no_progress':
        return [line('bad', `! no progress: ${circleText(event)} ${event.times} times over`)];
      case 'tool.away':
        return [
          line('bad', `! ${shortLine(event.tool, 60)} failed${nextTry(event)}: ${shortLine(event.error.message, 300)}`),
        ];
      case 'model.overflowed':
        return [line('bad', `! the request does not fit: ${shortLine(event.error.message, 300)}`)];
      case 'model.away':
        return [line('bad', `! the model is away${nextTry(event)}: ${shortLine(event.error.message, 300)}`)];
      case 'run.reopened':
        return [line('strong', reopenedText(event))];
      case 'planner.last_move':
        return [line('bad', `! ${event.reason}: one last move, without calls, to say what was found`)];
      case 'undo.started': {
        const { reason, code = reason } = event;
        return [line('strong', `↩ undoes what it has done, and ends then: ${shortLine(code, 60)}`)];
      }
      case 'undo.call':
        this.#args.clear();
        return [line('strong', `↩ step ${event.step + 1}  ${undoText(event)}`)];
      case 'undo.ended':
        return [line(event.failed + event.left === 0 ? 'good' : 'bad', `↩ ${undoneText(event)}`)];
      case 'run.repaired':
        return [line('bad', `⚒ set right by ${shortLine(event.by, 60)}: ${shortLine(event.problem.message, 200)}`)];
      case 'memory.recalled':
        return [line('quiet', `  ${recalledText(event)}`)];
      case 'run.repinned':
        return [line('strong', `▶ goes on with changed code (agent ${shortLine(event.agent, 60)})`)];
      case 'task.spawned':
      case 'task.paused':
      case 'task.resumed':
      case 'task.completed':
      case 'task.failed':
      case 'task.cancelled':
      case 'task.group_resolved':
        return taskLines(event);
      case 'approval.given':
      case 'approval.reminder':
      case 'approval.escalated':
      case 'rule.set':
      case 'rule.applied':
        return [approvalLine(event)];
      // Others say the same: what became of the control, the pause that was asked for or answered, the end of the stream.
      case 'control.received':
      case 'tool.approval_requested':
      case 'tool.rejected':
      case 'run.paused':
      case 'task.progress':
      case 'token':
      case 'tool.input':
      case 'planner.action_extra_field_dropped':
        return [];
      case 'planner.repair_guidance_injected':
        return [line('quiet', `  ${event.tier} to the model: ${event.counter} (${event.count} in a row)`)];
      case 'planner.repair_exhausted':
        return [line('bad', exhaustedText(event))];
      case 'planner.reply_repaired':
        return [line('quiet', `  the reply was repaired: ${shortLine(event.issues[0]?.message ?? '', 160)}`)];
      case 'model.fallback':
        return [
          line('bad', `! ${shortLine(event.from, 60)} failed: ${shortLine(event.error.message, 160)}; ${tried(event)}`),
        ];
      case 'model.output_downgraded':
        return [line('quiet', `  ${shortLine(event.model, 60)} cannot keep to ${event.from}: ${event.to} from now on`)];
      case 'model.usage_refused':
        return [
          line('bad', `! the usage told by ${shortLine(event.model, 60)} is not valid: ${shortLine(event.why, 200)}`),
        ];
      case 'model.warned':
        return event.warnings.map((warning) =>
          line('quiet', `  ${shortLine(event.model, 60)} warns: ${shortLine(warning, 200)}`),
        );
      case 'provider.invoked':
        return [line('quiet', `  ${shortLine(event.tool, 60)} ${shortArgs(event.input)} (by the provider)`)];
      case 'provider.completed':
        return [
          line(
            event.isError ? 'bad' : 'quiet',
            `  ${shortLine(event.tool, 60)} ${event.isError ? 'failed' : 'gave'} ${shortLine(terminalJson(event.output), 120)} (by the provider)`,
          ),
        ];
      case 'model.sources':
        return event.sources.map((source) => line('quiet', `  source: ${sourceText(source)}`));
      case 'input.unreadable':
        return [
          line('bad', `! the attachment ${shortLine(event.fileName ?? event.artifactRef, 100)} could not be read`),
        ];
      case 'call.waiting':
        return event.waits
          .filter((wait) => wait.for !== 'answer')
          .map((wait) =>
            line(wait.again === undefined ? 'quiet' : 'bad', `  ${shortLine(event.tool, 60)} waits ${waitText(wait)}`),
          );
      case 'call.waited':
        return [line('quiet', `  ${shortLine(event.tool, 60)} goes on: ${ENDS_OF_WAITS[event.ended]}`)];
      case 'event.passed':
        return [
          line(
            'bad',
            `! a signal of ${shortLine(event.key, 60)} was not taken: ${shortLine(event.error.message, 200)}`,
          ),
        ];
      case 'trajectory.compressed':
        return [line('quiet', `  the history was summarised (about ${grouped(event.tokenEstimate)} tokens)`)];
      case 'trajectory.shortened':
        return [
          line(
            'quiet',
            `  ${count(event.results.length, 'result', 'results')} of step ${event.step + 1} became a preview`,
          ),
        ];
      case 'trajectory.compression_failed':
        return [line('bad', `! the history could not be summarised: ${shortLine(event.errorMessage, 200)}`)];
      case 'planner.remark_dropped':
        return [line('bad', `! a remark of the planner was dropped: ${shortLine(event.why, 200)}`)];
      default:
        return [
          line('plain', `  ◇ ${shortLine((event satisfies RunEvent<OwnRemarkType>).type, 100)}  ${ownText(event)}`),
        ];
    }
  }

  /** A call of the run that is read has the name of its node; one of a task stands beside its run. */
  #chunkSource(event: RunEvent<'tool.chunk'>): string {
    const name = toolText(event.tool);
    if (event.run === event.identity.run) return `${this.#plan.nameOf(event)}${name}`;
    return `task ${shortLine(event.run, 80)}  ${name}`;
  }

  #answerWords({ payload }: RunEvent<'pause.resumed'>): string {
    const words = inQuotes(payload?.['message']);
    return words === this.#said ? '' : words;
  }

  #callLine(event: RunEvent<'tool.completed' | 'tool.failed' | 'tool.skipped'>): Line {
    const { outcome, tool, attempts, step, call, latencyMs, reuses } = event;
    const args = this.#args.get(`${step}.${call}`) ?? '';
    const { symbol, tone } = MARKS[outcome.kind];
    const words = [`  ${symbol} ${this.#plan.nameOf(event)}${toolText(tool)}`, args, duration(latencyMs)];
    if (attempts > 1) words.push(`${attempts} attempts`);
    if (reuses !== undefined) words.push(reusedText(attempts, reuses.step));
    if ('error' in outcome) words.push(this.#errorText(step, outcome.error));
    return line(tone, words.filter((word) => word !== '').join('  '));
  }

  /** Nodes of a plan know each other by their names. */
  #errorText(step: number, { code, message, data }: ErrorData): string {
    const call = data?.['branch'];
    const name = typeof call === 'number' ? this.#plan.nameOf({ step, call }).trim() : '';
    const text = name === '' ? message : message.replace(`branch ${call}`, () => name);
    return `${shortLine(code, 60)}: ${shortLine(text, 160)}`;
  }
}

/** What is to be known of such an end, whatever the answer says. */
function endWords({ reason, metadata }: RunEvent<'planner.finish'>): string {
  if (reason === 'length') return '  the answer is not whole: a reply may not be longer';
  const refusal = metadata?.['refusal'];
  if (!isJsonObject(refusal)) return '';
  const { model, category, message } = refusal;
  const said = [model, category, message].filter((text) => typeof text === 'string');
  return `  ${shortLine(said.join(': '), 300)}`;
}

/** The address of a page, or the name of a document. */
function sourceText(source: Source): string {
  if (source.type === 'document') return shortLine(source.filename ?? source.title, 200);
  return source.title === undefined
    ? shortLine(source.url, 300)
    : `${shortLine(source.title, 100)}  ${shortLine(source.url, 300)}`;
}

function heldText({ by, tool, limit, calls }: RunEvent<'tool.held_back'>): string {
  const whose = {
    cap: 'no step has more',
    decision: 'the planner says so',
    agent: 'its agent may have no more',
  } as const;
  const why = by === 'tool' ? 'the tool takes no more' : by === 'runtime' ? 'the runtime lets no more' : whose[by];
  const of = tool === undefined ? count(calls, 'call') : `${count(calls, 'call')} of ${shortLine(tool, 60)}`;
  return `${limit} of ${of} at once: ${why}`;
}

/** People count steps from 1. */
function reusedText(attempts: number, step: number): string {
  return attempts === 0 ? `as in step ${step + 1}, not called again` : `under the key of step ${step + 1}`;
}

const ANSWERS: Readonly<Partial<Record<ControlType, true>>> = {
  APPROVE: true,
  REJECT: true,
  SETTLE: true,
  RESUME: true,
};

function isOfTask(tool: string): boolean {
  return isTaskTool(tool) || tool === 'spawn_task' || tool === 'await_task';
}

/** What the control says to the planner, whole. */
function saidToPlanner({ type, payload = {} }: Control): string {
  if (type === 'USER_MESSAGE') {
    const files = messageFiles(payload).map((file) => ` ◇ ${fileText(file)}`);
    return `${inQuotes(wordsIn(payload))}${files.join('')}`;
  }
  if (type === 'REDIRECT') return inQuotes(payload['goal']);
  return type === 'INJECT_CONTEXT' ? inQuotes(payload) : '';
}

function inQuotes(said: Json | undefined): string {
  return said === undefined ? '' : `  “${typeof said === 'string' ? harmless(said) : terminalJson(said)}”`;
}

function controlText({ control }: RunEvent<'control.applied' | 'control.rejected' | 'control.undelivered'>): string {
  return `control ${control.type}${byWhom(control.from)}`;
}

export function byWhom(from: Caller | undefined): string {
  if (from === undefined) return '';
  return ` by ${shortLine(from.user, 60)}${from.scope === 'admin' ? ' (admin)' : ''}`;
}

function pauseText({ reason, payload }: RunEvent<'pause.requested'>): string {
  const isOfCall = typeof payload?.['tool'] === 'string';
  return isOfCall ? `‖ paused: ${reason}  ${about({ payload })}` : `‖ paused: ${reason}`;
}

function answerText({ verdict, reason, args, nodes, payload, by }: RunEvent<'pause.resumed'>): string {
  const because = payload?.['reason'];
  const settled = `settled: it ${payload?.['happened'] === true ? 'happened' : 'did not happen'}`;
  const said = reason === 'client_tool' ? 'the client says that it has failed' : settled;
  const what = verdict === 'settle' ? said : verdict;
  const words = [`▶ ${what} (${reason})${byWhom(by)}`];
  const edit = args === undefined ? nodes : args;
  if (edit !== undefined) words.push(`with ${terminalJson(edit)}`);
  if (typeof because === 'string') words.push(`“${shortLine(because, 160)}”`);
  return words.join('  ');
}

function recalledText({ profile, items }: RunEvent<'memory.recalled'>): string {
  const notes = count(items.length, 'note');
  return `remembered of this user: ${profile === undefined ? notes : `their profile, and ${notes}`}`;
}

function circleText({ period }: RunEvent<'planner.no_progress'>): string {
  return period === 1 ? 'the same step' : `the same ${period} steps`;
}

const MARKS: Readonly<Record<Outcome['kind'], { symbol: string; tone: Tone }>> = {
  value: { symbol: '✓', tone: 'good' },
  error: { symbol: '✗', tone: 'bad' },
  unknown: { symbol: '?', tone: 'bad' },
  cancelled: { symbol: '⊘', tone: 'quiet' },
  skipped: { symbol: '–', tone: 'quiet' },
  verdict: { symbol: '▶', tone: 'plain' },
};

/** What the names of decisions mean to somebody who does not know them. */
const DECISIONS: Readonly<Record<string, string>> = {
  CallParallel: 'calls side by side',
  RequestPause: 'asks',
  SpawnTask: 'starts a task',
  AwaitTask: 'waits for a task',
  Finish: 'is done',
};

function decisionLines(event: RunEvent<'planner.decision'>, seen: PlanSeen, texts: boolean): Line[] {
  const { step, decisionKind, tool, latencyMs, usage, text, rejected, partial } = event;
  const plan = seen.view(step);
  const named = tool === undefined ? (DECISIONS[decisionKind] ?? decisionKind) : shortLine(tool, 60);
  const what = partial === undefined ? (plan === undefined ? named : planWords(plan)) : PARTS[partial];
  const words = [`● step ${step + 1}`, what, duration(latencyMs), ...usageWords(usage)];
  const lines = [line('plain', words.join('  '))];
  if (texts && text !== undefined && text !== '') lines.push(line('quiet', `  “${shortLine(text, 200)}”`));
  if (rejected !== undefined) lines.push(line('bad', `  ✗ not carried out: ${shortLine(rejected.message, 200)}`));
  return lines;
}

const PARTS: Readonly<Record<PartialReply, string>> = {
  cut_off: 'the reply is cut off, and goes on',
  paused: 'the reply is paused, and goes on',
};

function reopenedText({ retries }: RunEvent<'run.reopened'>): string {
  if (retries === undefined) return '▶ had failed, and goes on';
  return `▶ its plan had failed, and is retried: ${shortLine(retries.nodes.join(', '), 300)}`;
}

function spentText({ model, usage }: RunEvent<'tool.spent'>): string {
  const { inputTokens = 0, outputTokens = 0, costMicroUsd } = usage;
  const who = model === undefined ? 'the tool' : shortLine(model, 60);
  const cost = costMicroUsd === undefined ? '' : `, ${dollars(costMicroUsd)}`;
  return `${who} used ${count(inputTokens + outputTokens, 'token')}${cost}`;
}

function planWords({ plan, nodes, growing }: PlanView): string {
  return `plan ${shortLine(plan, 32)} of ${count(nodes.length, 'node')}${growing ? ', and more to come' : ''}`;
}

/** What a node of a plan says to the user. */
function saidText(message: Json): string {
  return `“${shortLine(plainText(message), 500)}”`;
}

function plainText(value: Json): string {
  return typeof value === 'string' ? value : terminalJson(value);
}

/** What a planner says in an event of its own. */
function ownText({ data }: RunEvent<OwnRemarkType>): string {
  return shortLine(plainText(data), 200);
}

function exhaustedText({ attempts, reasons }: RunEvent<'planner.repair_exhausted'>): string {
  const why = reasons.at(-1);
  const what = `! nothing usable from the model in ${count(attempts, 'try', 'tries')}`;
  return why === undefined ? what : `${what}; the last: ${shortLine(why, 200)}`;
}

/** As it was said: a reader may come long afterwards. */
function nextTry({ retryAt, occurredAt }: RunEvent<'model.away' | 'tool.away'>): string {
  return retryAt === undefined ? '' : `, next try in ${duration(Math.max(0, retryAt - occurredAt))}`;
}

function tried({ from, to }: RunEvent<'model.fallback'>): string {
  return from === to ? 'again' : `${shortLine(to, 60)} instead`;
}

function usageWords(usage: Usage | undefined): string[] {
  if (usage === undefined) return [];
  const { inputTokens = 0, outputTokens = 0, costMicroUsd, estimated } = usage;
  if (inputTokens + outputTokens === 0) return [];
  const tokens = `${tokenWords(usage)}${estimated === true ? ' (estimated)' : ''}`;
  return costMicroUsd === undefined ? [tokens] : [tokens, dollars(costMicroUsd)];
}

type TaskEvent = RunEvent<
  | 'task.spawned'
  | 'task.paused'
  | 'task.resumed'
  | 'task.completed'
  | 'task.failed'
  | 'task.cancelled'
  | 'task.group_resolved'
>;

function taskLines(event: TaskEvent): Line[] {
  switch (event.type) {
    case 'task.spawned':
      return [line('strong', `  ↳ task ${shortLine(event.taskId, 80)}: ${shortLine(event.description, 160)}`)];
    case 'task.paused':
      return [line('strong', `  ‖ task ${shortLine(event.taskId, 80)} waits for somebody`)];
    case 'task.resumed':
      return [line('plain', `  ▶ task ${shortLine(event.taskId, 80)} goes on`)];
    case 'task.completed': {
      const result = event.result === undefined ? '' : `  ${shortLine(terminalJson(event.result), 160)}`;
      return [line('good', `  ✓ task ${shortLine(event.taskId, 80)}${result}`)];
    }
    case 'task.failed':
      return [line('bad', `  ✗ task ${shortLine(event.taskId, 80)}  ${shortLine(event.code, 60)}`)];
    case 'task.cancelled':
      return [line('quiet', `  ⊘ task ${shortLine(event.taskId, 80)} was cancelled`)];
    case 'task.group_resolved':
      return groupLines(event);
    default:
      return event satisfies never;
  }
}

/** A group of one task ends with it: nothing more to say. */
function groupLines({ groupId, finalStatus, members, reason }: RunEvent<'task.group_resolved'>): Line[] {
  if (members.length === 1 && reason === undefined) return [];
  const because = reason === undefined ? '' : ` (${shortLine(reason, 80)})`;
  const text = `  ${shortLine(groupId, 80)} ${finalStatus}${because}: ${count(members.length, 'task')}`;
  return [line(finalStatus === 'completed' ? 'good' : 'quiet', text)];
}

/** What a call waits for, behind the word "waits". */
function waitText({ for: what, until, key = '', again }: CallWait): string {
  const time = until === undefined ? '' : ` until ${new Date(until).toISOString()}`;
  const because = again === undefined ? '' : `, since what came was not taken: ${shortLine(again, 200)}`;
  return what === 'event' ? `for ${shortLine(key, 60)}${time}${because}` : time.trim();
}

const ENDS_OF_WAITS: Readonly<Record<WaitEnd['ended'], string>> = {
  time: 'the time has come',
  event: 'a signal has come',
  answer: 'it was answered',
  declined: 'nobody wants to answer',
  failed: 'it has failed',
  timeout: 'nothing came in time',
  superseded: 'it waits no more, as something else was said',
};

function undoText({ tool, undoes: { step, call } }: RunEvent<'undo.call'>): string {
  return `${shortLine(tool, 60)} undoes call ${call + 1} of step ${step + 1}`;
}

function undoneText({ undone, failed, left }: RunEvent<'undo.ended'>): string {
  const others = [failed === 0 ? '' : `, ${failed} could not be`, left === 0 ? '' : `, ${left} left as they are`];
  return `${count(undone, 'call')} undone${others.join('')}`;
}
