/** What a run waits for, for a person, and the commands that answer it. */
import {
  asksOpenly,
  defined,
  type ErrorData,
  isJsonObject,
  type Json,
  type JsonObject,
  PilotageError,
  type TaskPause,
} from '#core';
import type { PauseNotice } from '#runtime';
import { missingIn, type RunState } from '#state';
import { hint, type Options } from './options.ts';
import type { Line } from './terminal.ts';
import { duration, harmless, shortArgs, shortLine, terminalJson } from './text.ts';

/** Every pause that can be answered through this run: its own, and those of its tasks, waited for or not. */
export function pauseNotices(state: RunState): readonly PauseNotice[] {
  const { run } = state.identity;
  const own = state.pauses.map((pause) => ({ ...pause, run, ...defined({ missing: missingIn(state, pause) }) }));
  return [...own, ...state.tasks.flatMap((task) => task.pauses)];
}

/** Why nobody goes on with it. */
export function problemText({ code, message }: Pick<ErrorData, 'code' | 'message'>): string {
  return `The last process that wanted to go on could not: ${shortLine(message, 500)} (${shortLine(code, 60)})`;
}

/** What the planner is told. @throws PilotageError `payload_invalid` */
export function ownAnswer({ token }: Pick<TaskPause, 'token'>, value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  const message = `The answer to ${token} was refused, and the question is still open: the planner asks for an object, such as {"answer": ${shortLine(terminalJson(value), 60)}}.`;
  throw new PilotageError('payload_invalid', message, { data: { token } });
}

/** What a person types to answer a pause. `token` is there when several are open. */
export interface Ways {
  happened(token: string | undefined): string;
  didNotHappen(token: string | undefined): string;
  /** Lets the tool look up whether its call has happened. */
  lookUp(token: string | undefined): string;
  approve(token: string | undefined, digest?: string): string;
  reject(token: string | undefined): string;
  /** Answers a question. @param value JSON; absent: words. */
  answer(token: string | undefined, value: string | undefined): string;
  goOn(pause: PauseNotice, token: string | undefined): string;
}

/** Commands about the run `id`, with those of the given options that they need, too. */
export function commandsFor(id: string, options: Options): Ways {
  const which = (token: string | undefined): string[] => (token === undefined ? [] : ['--token', token]);
  return {
    happened: (token) => hint('settle', id, options, ...which(token), '--happened', '--value', '…'),
    didNotHappen: (token) => hint('settle', id, options, ...which(token), '--did-not-happen'),
    lookUp: (token) => hint('resume', id, options, ...which(token)),
    approve: (token, digest) =>
      hint('approve', id, options, ...which(token), ...(digest === undefined ? [] : [`--digest=${digest}`])),
    reject: (token) => hint('reject', id, options, ...which(token)),
    answer: (token, value) =>
      value === undefined
        ? hint('resume', id, options, ...which(token), '--message', '…')
        : hint('answer', id, options, ...which(token), '--value', value),
    goOn: (pause, token) => hint('resume', id, options, ...which(token), ...answerFlags(id, pause)),
  };
}

/**
 * The pauses of the run `id`, each with how to answer it.
 * @param named whether the commands name the tokens. Default: when there are several.
 */
export function pauseLines(id: string, pauses: readonly PauseNotice[], ways: Ways, named?: boolean): Line[] {
  return pauses.flatMap((pause) => onePause(id, pause, named ?? pauses.length > 1, ways));
}

function onePause(id: string, pause: PauseNotice, isOneOfSeveral: boolean, ways: Ways): Line[] {
  const { expiresAt, token } = pause;
  const which = isOneOfSeveral ? token : undefined;
  const title = waitsFor(subject(id, pause), pause);
  const lines: Line[] = [];
  const add = (text: string): void => void lines.push({ tone: 'plain', text: `  ${text}` });
  if (isOneOfSeveral || needsVerdict(pause)) add(`token    ${token}`);
  const isQuestion = pause.wait !== undefined || (pause.schema !== undefined && asksOpenly(pause));
  if (pause.answered === true) {
    add('answered, not taken yet');
    return [{ tone: 'strong', text: isQuestion ? questionTitle(id, pause) : title }, ...lines];
  }
  if (expiresAt !== undefined) add(`expires  ${expiry(expiresAt)}`);
  if (isDoubt(pause)) {
    const { key, since, can_look_up: canLookUp } = pause.payload ?? {};
    if (typeof since === 'number') add(`since    ${new Date(since).toISOString()}`);
    add(`key      ${shortLine(String(key ?? ''), 200)}`);
    add(`did      ${ways.happened(which)}`);
    add(`did not  ${ways.didNotHappen(which)}`);
    if (canLookUp === true) add(`look up  ${ways.lookUp(which)}`);
    return [{ tone: 'strong', text: title }, ...lines];
  }
  if (isQuestion) {
    for (const text of questionTexts(pause, which, ways)) add(text);
    return [{ tone: 'strong', text: questionTitle(id, pause) }, ...lines];
  }
  if (needsVerdict(pause)) {
    const listed = (label: string, text: readonly string[]): void =>
      text.forEach((line, index) => {
        add(`${(index === 0 ? label : '').padEnd(7)}  ${line}`);
      });
    listed('args', wholeArgs(pause));
    // By its schema.
    listed('it gets', linesOf(pause.payload?.['checked_args']));
    for (const text of approvalTexts(pause)) add(text);
    // Others have changed what was asked first: nobody approves it without having seen it.
    const seen = pause.given === undefined ? undefined : String(pause.payload?.['digest']);
    add(`yes      ${ways.approve(which, seen)}`);
    add(`no       ${ways.reject(which)}`);
    return [{ tone: 'strong', text: title }, ...lines];
  }
  // What a run says itself stands with its last step.
  if (pause.run !== id && pause.text !== undefined) {
    for (const [index, line] of harmless(pause.text).trim().split('\n').entries()) {
      add(`${(index === 0 ? 'asks' : '').padEnd(7)}  ${line}`);
    }
  }
  return [{ tone: 'strong', text: `${title} Go on with: ${ways.goOn(pause, which)}` }, ...lines];
}

function questionTitle(id: string, pause: PauseNotice): string {
  const who = subject(id, pause);
  if (pause.reason === 'client_tool') return waitsFor(who, pause);
  const { tool, message } = pause.payload ?? {};
  if (!asksOpenly(pause))
    return `${who} waits for an answer: ${shortLine(String(tool), 60)} asks: ${harmless(String(message))}`;
  // What a run says itself stands with its last step.
  const asked = wordsOf(pause) ?? (pause.run === id ? undefined : pause.text);
  return `${who} waits for an answer${asked === undefined ? ` (${pause.reason}).` : `: ${harmless(asked).trim()}`}`;
}

/** What there is to know about a question beside its words, and how it is answered. */
function questionTexts(pause: PauseNotice, which: string | undefined, ways: Ways): string[] {
  const { payload = {}, schema } = pause;
  const isOwn = asksOpenly(pause);
  const { question: _, message: __, ...rest } = payload;
  const about = isOwn && Object.keys(rest).length > 0 ? rest : payload['payload'];
  const { refused } = payload;
  const texts = linesOf(about).map((text, index) => `${(index === 0 ? 'about' : '').padEnd(7)}  ${text}`);
  if (typeof refused === 'string') texts.unshift(`again    The last answer did not fit: ${shortLine(refused, 200)}`);
  texts.push(`answer   ${ways.answer(which, schema === undefined ? undefined : terminalJson(sampleOf(schema)))}`);
  // Where the planner asks for words, no says nothing.
  if (!isOwn || pause.reason !== 'await_input') texts.push(`no       ${ways.reject(which)}`);
  return texts;
}

/** What the planner asks. */
function wordsOf({ payload = {} }: PauseNotice): string | undefined {
  const words = payload['question'] ?? payload['message'];
  return typeof words === 'string' ? words : undefined;
}

/** Who has approved, how many are missing, and how often readers were reminded. */
function approvalTexts({ approvals, approved = [], missing, reminded, escalate, escalatedAt }: PauseNotice): string[] {
  const texts: string[] = [];
  if (missing !== undefined) {
    const who = approved.map(
      ({ by, at }) => `${by === null ? 'the program' : shortLine(by.user, 60)} ${new Date(at).toISOString()}`,
    );
    const of = approvals === undefined ? '' : ` of ${approvals}`;
    texts.push(`people   ${missing}${of} must still approve${who.length === 0 ? '' : `; approved: ${who.join(', ')}`}`);
  }
  if (reminded !== undefined) texts.push(`told     ${reminded.times} times that it waits`);
  if (escalate !== undefined && escalatedAt !== undefined) {
    texts.push(`sent to  ${shortLine(escalate.to, 100)} ${new Date(escalatedAt).toISOString()}`);
  }
  return texts;
}

/** Whether resuming alone does not answer the pause: somebody has to approve or reject. */
export function needsVerdict(pause: TaskPause): boolean {
  return pause.reason === 'approval_required' || (isDoubt(pause) && pause.payload?.['can_look_up'] !== true);
}

/** Nobody knows whether its call has happened. */
function isDoubt({ reason }: TaskPause): boolean {
  return reason === 'in_doubt';
}

function subject(id: string, { run }: PauseNotice): string {
  return run === id ? 'The run' : `The task ${shortLine(run, 80)}`;
}

function waitsFor(who: string, pause: PauseNotice): string {
  const { reason, payload = {}, step } = pause;
  const budget = payload['budget'];
  if (step === undefined && typeof budget === 'string') return limitText(budget, payload);
  if (payload['no_progress'] === true) return `${who} goes round in circles.`;
  if (payload['by'] === 'operator') return `${who} is paused.`;
  if (reason === 'model_unavailable') return `${who} has no model. ${shortLine(String(payload['message'] ?? ''), 500)}`;
  if (reason === 'context_exhausted')
    return `${who} has more to send than its models take. ${shortLine(String(payload['message'] ?? ''), 500)}`;
  if (reason === 'plan_failed')
    return `${who} waits, since its plan has failed. ${shortLine(String(payload['message'] ?? ''), 500)}`;
  if (reason === 'await_input') {
    const asked = wordsOf(pause);
    return `${who} waits for your message${asked === undefined ? '.' : `: ${harmless(asked)}`}`;
  }
  if (reason === 'client_tool') return `${who} waits for a client to carry out a call: ${about(pause)}`;
  if (isDoubt(pause)) {
    const { tool, args, why } = payload;
    const call = `${shortLine(String(tool), 60)} ${shortArgs(args ?? null, 160)}`;
    return `${who} is held: nobody knows whether this call has happened: ${call}. ${shortLine(String(why ?? ''), 300)}`;
  }
  const what = about(pause);
  if (reason === 'approval_required') return `${who} waits for approval${what === '' ? '.' : `: ${what}`}`;
  return what === '' ? `${who} waits: ${reason}.` : `${who} waits: ${reason} ${what}`;
}

function limitText(budget: string, { tool, needs, left }: JsonObject): string {
  const limit = shortLine(budget, 20);
  if (needs === undefined) return `The limit of ${limit} is used up.`;
  const amount = (value: Json | undefined): string => (budget === 'cost' ? `$${value}` : String(value));
  return `The limit of ${limit} has no room for ${typeof tool === 'string' ? shortLine(tool, 60) : 'the next request to the model'}, which needs ${amount(needs)}; ${amount(left)} is left.`;
}

/** The arguments of a call, where the title has only their beginning: nobody approves what they cannot see. */
function wholeArgs({ payload }: PauseNotice): readonly string[] {
  const args = payload?.['args'];
  return args === undefined || terminalJson(args).length <= TITLE_CHARS ? [] : linesOf(args);
}

function linesOf(value: Json | undefined): readonly string[] {
  return value === undefined ? [] : harmless(JSON.stringify(value, null, 2)).split('\n');
}

/** A value of the shape that the schema asks for, to be filled in. */
function sampleOf(schema: JsonObject, levelsLeft: number = 4): Json {
  const { type, properties, enum: words, const: only, default: usual } = schema;
  if (usual !== undefined) return usual;
  if (only !== undefined) return only;
  if (Array.isArray(words) && words.length > 0) return words[0] as Json;
  if (isJsonObject(properties) && levelsLeft > 0) {
    const fields = Object.entries(properties);
    return Object.fromEntries(
      fields.map(([name, field]) => [name, isJsonObject(field) ? sampleOf(field, levelsLeft - 1) : '…']),
    );
  }
  return SAMPLES[typeof type === 'string' ? type : 'string'] ?? '…';
}

const SAMPLES: Readonly<Record<string, Json>> = {
  integer: 1,
  number: 1,
  boolean: true,
  array: [],
  object: {},
  null: null,
};

/** How much of the arguments of a call stands in a title. */
const TITLE_CHARS = 160;

/** The call that waits and why, or what the planner asks. */
export function about({ payload = {} }: Pick<TaskPause, 'payload'>): string {
  const {
    tool,
    args,
    args_stored: stored,
    checked_args: __,
    tool_call_id: ___,
    digest: _,
    reason,
    url,
    message,
    ...rest
  } = payload;
  if (typeof tool !== 'string') return shortArgs(payload, TITLE_CHARS);
  const large = isJsonObject(stored) ? `(arguments of ${String(stored['sizeBytes'])} bytes)` : shortArgs(rest);
  const parts = [shortLine(tool, 60), args === undefined ? large : shortArgs(args, TITLE_CHARS)];
  if (typeof url === 'string') parts.push(shortLine(url, 200));
  const because = typeof reason === 'string' ? reason : message;
  const what = parts.filter((part) => part !== '').join(' ');
  return typeof because === 'string' ? `${what} (${shortLine(because, 160)})` : what;
}

function expiry(at: number): string {
  const left = at - Date.now();
  return left > 0 ? `in ${duration(left)}` : `${duration(-left)} ago`;
}

/** What the command that answers needs to say. */
function answerFlags(id: string, { reason, payload, run }: PauseNotice): string[] {
  if (reason === 'await_input') return ['--message', '…'];
  // The limits of a task cannot be raised.
  if (run !== id) return [];
  const { limit: now, raise } = payload ?? {};
  const least = isJsonObject(raise) ? Number(Object.values(raise)[0]) : 0;
  const limit = Math.max(Number(now) * 2, least);
  switch (payload?.['budget']) {
    case 'steps':
      return ['--max-steps', String(limit)];
    case 'calls':
      return ['--max-calls', String(limit)];
    case 'tokens':
      return ['--max-tokens', String(limit)];
    case 'cost':
      return ['--max-cost-usd', String(limit)];
    case 'deadline':
      return ['--timeout', '60'];
    default:
      return [];
  }
}

/** Nothing is known of the question that somebody names. */
export function unknownPause(): PilotageError {
  return new PilotageError('pause_not_found', 'No pause with this token is open, and none is known that was.');
}
