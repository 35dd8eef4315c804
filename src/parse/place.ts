/** Where in a reply a call stands: by itself, where calls are made, or inside of words that speak of it. */
import { jsonEquals } from '#core';
import type { FoundCall } from './find-calls.ts';
import { isLooseObject, type Loose, looseToJson } from './loose-value.ts';
import { type Mood, moodOf, setsOut } from './mood.ts';
import { type ParseTool, requiredOf } from './names.ts';
import { isTemplate } from './placeholders.ts';
import { isSpaceCode, lineEnd } from './reader.ts';
import { answerStart, opensText, withoutThoughts } from './turns.ts';

/** What is the same for all calls of a text. */
interface Reply {
  readonly text: string;
  /** Tools that the text defines itself. */
  readonly defined: ReadonlySet<ParseTool>;
  readonly asks: boolean;
  readonly asksLeave: boolean;
  readonly isDialogue: boolean;
  /** The words around the code, with those of its comments; gathered once, when they are asked for. */
  readonly words: () => ReadonlySet<string>;
}

const DIALOGUE_CHARS = 4000;

/**
 * The calls that the text makes, each with how sure that is. What stands inside of a sentence, what the words before it
 * refuse or report, a template, and the use of a function that the text defines, are not calls.
 */
export function callsMade(text: string, found: readonly FoundCall[], defined: ReadonlySet<ParseTool>): FoundCall[] {
  let spoken: ReadonlySet<string> | undefined;
  const reply: Reply = {
    text,
    words: () => (spoken ??= spokenWords(text)),
    defined,
    asks: endsAsking(text, true),
    asksLeave: endsAsking(text, false),
    isDialogue: isDialogue(withoutCode(text.slice(0, DIALOGUE_CHARS))),
  };
  const words = new Surroundings(text);
  const made: FoundCall[] = [];
  let mood: Mood | undefined;
  for (const [index, call] of found.entries()) {
    const before = found[index - 1];
    words.reach(call.start);
    if (before === undefined || !isSameList(before.end, call.start, text)) {
      const until = found[index + 1]?.start ?? text.length;
      const goesOn = before !== undefined && !/[.!?\n]/.test(text.slice(before.end, call.start));
      mood = goesOn && (mood === 'made' || mood === 'spoken of') ? mood : placeMood(reply, words, call, until, mood);
    }
    words.pass(call.end);
    if (mood === 'spoken of' || isExample(reply, call)) continue;
    if (mood !== 'shown') made.push(call);
    // Behind a call that is made, what is shown is another way to write it.
    else if (isComplete(call) && !made.some((other) => other.form !== 'loose' && isVariant(call, other)))
      made.push({ ...call, form: 'loose' });
  }
  return made;
}

/** Only commas, brackets and spaces stand between two calls of one list. */
export function isSameList(end: number, start: number, text: string): boolean {
  for (let at = end; at < start; at += 1) {
    if (!isSpaceCode(text.charCodeAt(at)) && !',;[](){}"\''.includes(text.charAt(at))) return false;
  }
  return true;
}

/** @param last the mood of the calls before, which goes on where nothing is said between. */
function placeMood(reply: Reply, words: Surroundings, call: FoundCall, until: number, last?: Mood): Mood | undefined {
  const { text } = reply;
  // When a name has an object below it, the place of the object counts.
  const start = call.syntax === 'named' ? text.indexOf('{', call.start) : call.start;
  const lineStart = Math.max(text.lastIndexOf('\n', start - 1) + 1, words.at);
  const lead = text.slice(lineStart, Math.max(lineStart, call.start));
  const tail = text.slice(call.end, Math.min(lineEnd(text, call.end), until));
  const near = text.slice(Math.max(words.at, call.start - NEAR_CHARS), call.start);
  if (isEchoed(lead, tail, near) || isOtherLanguage(words.fence) || reply.asksLeave) return 'spoken of';
  const after = text.slice(call.end, Math.min(call.end + NEAR_CHARS, until));
  if (isTakenBack(after) || isInBody(text, start)) return 'spoken of';
  const isCut = isInsideSentence(near, text.slice(call.end, call.end + NEAR_CHARS));
  const isMidSentence = isWordy(bareLead(lead)) && GOES_ON.test(tail);
  const isInline = isCut || isWordy(bareLead(lead)) || isWordyTail(tail);
  if (!isInline && (opensText(text, call.start) || ACTION.test(near))) return 'made';
  if (!isInline && last !== undefined && !isWordy(words.since)) return last;
  const mood = moodOf(words.since);
  if (mood === 'spoken of' || (mood === 'made' && !isCut)) return mood;
  if (mood === undefined && (call.syntax === 'react' || (CALL_MARK.test(near) && !isMidSentence))) return 'made';
  if (isInline || isNoPlaceForCalls(words.before) || reply.isDialogue) return 'spoken of';
  if (isLesson(words.before) || isLesson(after)) return 'spoken of';
  if (mood === 'shown' && (reply.asks || asksFirst(words.before))) return 'spoken of';
  return setsOut(words.since) ? mood : 'shown';
}

const NEAR_CHARS = 400;
const ACTION = /(?:^|\n)\W{0,4}Action(?: \d+)?\W{0,4}:\W{0,4}(?:```\w{0,12}\s{0,8})?$/;
/** A mark that only calls have. */
const CALL_MARK = /(?:<\/?(?:tool|function)_?calls?>|<\|\w{1,40}\|>|\[TOOL_CALLS\])[\s[(]*$/i;
const LABEL = /[:=]\s*["'`*([{]*$/;
/** Behind the end of a tag the sentence goes on. */
const GOES_ON = /^\s*(?:<\/[\w-]{1,40}>)?[\])}"'`;,*\s]*\p{Ll}{2}/u;
const LIST_MARK = /^\s*(?:[-*•+]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+/;
const STATEMENT = /^\s*(?:(?:print|console\.log|assert|return|await|yield|const|let|var)\b[\s(]*)+/;
const QUOTED_OR_TAG = /<[^<>]*>|(["'])[^"'\n]*\1/g;
/** An object in the brackets of a function: `handle({…`. */
const HANDED_ON = /^\s*[[(]*(?:[\w.]+\s?=\s?)?[\w.]+(?:[[({"'`]+\s*)?$/;

/** What stands before a call on its line, without what may: a label, a mark of a list, a word of a program, tags. */
function bareLead(lead: string): string {
  const rest = lead.replace(LIST_MARK, '').replace(STATEMENT, '').replace(QUOTED_OR_TAG, '');
  return LABEL.test(rest) || HANDED_ON.test(rest) ? '' : rest;
}

function isWordy(words: string): boolean {
  return /\p{L}{2}/u.test(words);
}

function isWordyTail(tail: string): boolean {
  return /^[\])}"'`;,.:*\s]*(?!for\b|or \[\])\p{L}{2}/u.test(tail);
}

/** A block in the middle of a sentence: words before it that end with no mark, and words behind it that begin with none. */
function isInsideSentence(before: string, after: string): boolean {
  if (!/\p{L}{2}[,\s]*\n\s*(?:```\w{0,12}\s*)?[\s[({"']*$/u.test(before)) return false;
  return /^[\s\])}"';.]*(?:\n\s*```)?\s*\n\s*(?!and then\b)\p{Ll}{2}[\p{L}']* /u.test(after);
}

/** The arguments are a template, or the text defines the function itself and then shows its use. */
function isExample({ text, defined, words }: Reply, call: FoundCall): boolean {
  if (isTemplate(call, opensText(text, call.start))) return true;
  const isCode = call.syntax === 'python' || call.syntax === 'named';
  return isCode && call.tool !== undefined && defined.has(call.tool) && !isGrounded(words(), call);
}

/** Whether two calls have the same tool and values, and one has more values than the other. */
function isVariant(call: FoundCall, other: FoundCall): boolean {
  const shared = Object.keys(call.named).filter((key) => Object.hasOwn(other.named, key));
  return (
    call.tool === other.tool && shared.length > 0 && shared.every((key) => isEqual(call.named[key], other.named[key]))
  );
}

function isEqual(left: Loose | undefined, right: Loose | undefined): boolean {
  return left !== undefined && right !== undefined && jsonEquals(looseToJson(left), looseToJson(right));
}

/** All arguments that the tool requires are there. */
function isComplete({ tool, named, positional }: FoundCall): boolean {
  if (tool === undefined) return false;
  const [only] = positional;
  if (isLooseObject(only)) return requiredOf(tool).every((key) => Object.hasOwn({ ...only, ...named }, key));
  return requiredOf(tool).filter((key) => !Object.hasOwn(named, key)).length <= positional.length;
}

const BETWEEN_WORDS = /[^\p{L}\d.]+/u;

function spokenWords(text: string): ReadonlySet<string> {
  const comments = text.match(/(?:^|\n)[ \t]*(?:#|\/\/) [^\n]*/g) ?? [];
  return new Set([withoutCode(text), ...comments].join(' ').split(BETWEEN_WORDS));
}

/** The words around the code speak of one of its values: it is about the request, not about the function. */
function isGrounded(words: ReadonlySet<string>, { named, positional }: FoundCall): boolean {
  return [...positional, ...Object.values(named)].some((value) => {
    const shown = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
    return shown.split(BETWEEN_WORDS).some((word) => word !== '' && words.has(word));
  });
}

// What kind of text a call stands in: a reply that acts, or one that documents, offers, asks or repeats what others wrote.

/** A heading or a section as manuals have it. */
const MANUAL =
  /^(?:(?:#{1,6}|={1,6}) \W*(?:usage|invocation|see also|examples?|parameters?|arguments|returns?|quick ?start|syntax|reference|api|synopsis|install(?:ation)?|getting started|licen[sc]e|recipe)\b|(?:figure|listing|chapter|exercise) \d|(?:#{1,6}|={1,6}) [^\n]*\b(?:how to|tutorial|guide|introduction|what's new|change ?log|release notes|migration|faq|lesson|chapter|overview)\b|#{1,6} (?:changed|added|fixed|removed|deprecated|unreleased|\[?v?\d+\.\d+)|\W{0,4}Q\W{0,3}:|\.\. (?:code-block|sourcecode|code)::|(?:NAME|SYNOPSIS|EXAMPLES?|USAGE|DESCRIPTION|OPTIONS)\s*$)/im;

/** Several ways are shown, and none of them taken. */
const ALTERNATIVES =
  /\b(?:two|three|several|both|either|different|many) (?:\w+ )?(?:ways|styles|forms|formats|variants|notations|syntaxes|approaches|alternatives)\b/i;

/** The tool does not fit what is asked. */
const UNSUITABLE =
  /\b(?:not|n't) (?:\w+ )?(?:suitable|relevant|applicable|designed|appropriate|intended|meant|related|needed)\b|\bcan(?:not|'t| not) be (?:used|called|answered|made|applied)\b|\b(?:no|none of the) (?:(?:provided|available|given|suitable|relevant|such) )*(?:functions?|tools?)\b/i;

/** The model asks for what it needs before it can call. */
const ASKING =
  /\b(?:could|can|would) you (?:please )?(?:provide|tell|give|specify|share|confirm|clarify|let)\b|\bplease (?:provide|specify|tell|share|confirm|let me know|give)\b|\b(?:need|require)s? (?:more|additional|further|some) (?:information|details?)\b/iu;

const PERMISSION =
  /\b(?:shall|should|may|can) (?:i|we)\b|\b(?:do|would) you (?:want|like|agree|prefer|approve)\b|\b(?:is|was|does) (?:that|this|it) (?:right|ok|okay|correct|fine|look)\b|\bgo ahead\b|\bproceed\b|\bconfirm\b/i;

const ENDS_WITH_QUESTION = /[^.!?？\n]*[?？]["')*_\s]*$/;

/** Turns of a conversation that is told, frames of an error. */
const TURN = /^\W{0,4}(?:user|human|customer|client|visitor)\s?:/im;
const SPEAKER =
  /^\*{0,2}(?!(?:Thoughts?|Action|Observation|Plan|Step|Note|Answer|Reason|Question|Goal|Task|Tool|Function|Call|Response|Output|Input|Result|Name|Arguments)\b)(\p{L}[\p{L} .]{1,20})\s?:[ \t]+\S/gmu;

/** Whether the words before a call that is not plainly made say that none is. */
function isNoPlaceForCalls(before: string): boolean {
  return MANUAL.test(before) || ALTERNATIVES.test(before) || UNSUITABLE.test(before);
}

/** Two speak in turn. */
function isDialogue(text: string): boolean {
  if (TURN.test(text)) return true;
  const turns = [...text.matchAll(SPEAKER)].map(([, name]) => name);
  const speakers = new Set(turns);
  return speakers.size === 2 && turns.length > 2;
}

function asksFirst(before: string): boolean {
  return ASKING.test(before);
}

/** Whether the reply ends by asking whether it may, or, with `any`, by asking anything. */
function endsAsking(text: string, any: boolean): boolean {
  const question = ENDS_WITH_QUESTION.exec(text.slice(-400))?.[0];
  return question !== undefined && (any || PERMISSION.test(question));
}

/** Languages in which no model calls tools. */
const OTHER_LANGUAGE =
  /^(?:bash|sh|shell|zsh|console|powershell|diff|patch|graphql|proto|protobuf|sql|yaml|yml|toml|ini|conf|csv|html|dockerfile|http|go|golang|rust|c|cpp|csharp|kotlin|swift|php|ruby|scala|haskell|perl|latex|markdown|md|mermaid|log)$/i;

function isOtherLanguage(fence: string | undefined): boolean {
  return fence !== undefined && OTHER_LANGUAGE.test(fence);
}

/** A quotation, a comment, a prompt. */
const ECHO = /^\s*(?:[-*+] \[[ xX]\] |>|#|\/\/|--|\*\s|\.\.\.|In ?\[\d+\]:|Out ?\[\d+\]:|[$%] )/;
/** Words, and then a quotation that is still open. */
const QUOTING = /\p{L}[^"\n]*["\u201c](?:[^"\u201d\n]*\p{L})?[^"\u201d\n]*$/u;
const FRAME = /(?:^|\n)\s*(?:File ".*", line \d+.*|at .*:\d+\)?|Traceback .*)\n[^\n]*$/;
const PAGE = /<(?:pre|code|p|li|td|blockquote|samp)(?:\s[^<>]*)?>\W*$/i;

/** An element that holds what others said or what is shown, or a comment that no words lead up to, which is still open. */
const OPEN_ELEMENT =
  /[^:>\s]\s*<!--(?![\s\S]*-->)|<(conversation|dialog(?:ue)?|transcript|chat|history|logs?|examples?|sample|quote|cite|q|user|human|system|tool|tool_result|tool_response|tool_output|function_result|user_message|document|page|web_page|source|email|article|section|script|button|td|th|h[1-6]|summary|details|template|note|comment)(?:\s[^<>]*)?>(?![\s\S]*<\/\1\s*>)/i;
/** The call is what a function does when it is called, or what a test looks at. */
const DEFERRED = /(?:\blambda\b[^:\n]*:|=>)[\s({]*$/;
const ASSERTING = /^\s*(?:assert\b|expect\()/;
const COMPARED = /^[\s)\]]*(?:[=!]==?|\.(?:should|to(?:Be|Equal))\b)/;
const BODY = /^\s*(?:@|(?:export |default |public |private |async )*(?:def|function)\s+(?!main\b)\w)/;

/** Whether the line that begins at `at` stands in the body of a function, by its indentation. */
function isInBody(text: string, at: number): boolean {
  const lines = text.slice(Math.max(0, at - BODY_CHARS), at).split('\n');
  let indent = /^[ \t]*/.exec(lines.pop() ?? '')?.[0].length ?? 0;
  for (let line = lines.pop(); line !== undefined && indent > 0 && !line.includes('```'); line = lines.pop()) {
    const found = line.search(/\S/);
    if (found < 0 || found >= indent) continue;
    if (BODY.test(line)) return true;
    indent = found;
  }
  return false;
}

const BODY_CHARS = 2000;

/** Words behind a call that take it back, or say that it was not made. */
const TAKEN_BACK =
  /^[\s`\])}>"'*]*(?:(?:wait|hmm+|actually|on second thoughts?|scratch that|never ?mind|forget (?:it|that)|stop|oops|correction)\b\s*[,.:;!–-]|no[,.]\s)|\b(?:i|we)(?: have not|'ve not| haven't| did not| didn't| do not| don't| will not| won't)(?: yet| actually| really)? (?:sen[dt]|call(?:ed)?|r[ua]n|execut\w*|ma[dk]e|follow\w*|pa(?:y|id))\b/i;

function isTakenBack(after: string): boolean {
  return TAKEN_BACK.test(after);
}

const LESSON = /\b(?:homework|exercise|quiz|(?:in|of) (?:today's|this|our|the) (?:lesson|lecture|lab))\b/i;

/** Somebody is taught. */
function isLesson(words: string): boolean {
  return LESSON.test(words);
}

/**
 * Whether a call stands in a line that repeats something: a quotation, a comment, a console, a table, a stack of frames, a page.
 * @param lead what stands before it on its line, `tail` what stands behind it, `near` what stands before it in all.
 */
function isEchoed(lead: string, tail: string, near: string): boolean {
  const isRow = /^\s*\|/.test(lead) && /\|\s*$/.test(tail);
  const isQuoted = (lead.split('"').length % 2 === 0 || lead.includes('\u201c')) && QUOTING.test(lead);
  if (DEFERRED.test(lead) || (ASSERTING.test(lead) && COMPARED.test(tail)) || OPEN_ELEMENT.test(near)) return true;
  return isRow || isQuoted || ECHO.test(lead) || FRAME.test(near) || PAGE.test(near);
}

// The words around the calls of a text, gathered as one goes from call to call: each character is looked at once.

/** More of what stands before a call is not looked at. */
const KEPT_CHARS = 4000;

const TICKS = '```';

class Surroundings {
  readonly #text: string;
  #at: number;
  /** The language of the open fence, if one is open. */
  #fence: string | undefined;
  /** What was said so far: without code, thinking and calls. */
  #before = '';
  #since = '';

  constructor(text: string) {
    this.#text = text;
    this.#at = answerStart(text);
  }

  /** Where the last call ended, or the answer begins. */
  get at(): number {
    return this.#at;
  }

  /** The words before the call, at most the last 4,000 characters. */
  get before(): string {
    return this.#before;
  }

  /** Those of them that follow the call before this one. */
  get since(): string {
    return this.#since;
  }

  /** The language of the fence around the call; empty when it has none. */
  get fence(): string | undefined {
    return this.#fence;
  }

  /** Goes on to a call. */
  reach(start: number): void {
    this.#since = '';
    const parts = (withoutThoughts(this.#text.slice(this.#at, start)) ?? '').split(TICKS);
    for (const [index, part] of parts.entries()) {
      if (index > 0)
        this.#fence = this.#fence === undefined ? (/^\s?([\w+#-]{0,20})/.exec(part)?.[1] ?? '') : undefined;
      if (this.#fence === undefined) this.#since += `${index > 0 ? '\n' : ''}${part}`;
    }
    this.#before = `${this.#before}\n${this.#since}`.slice(-KEPT_CHARS);
  }

  /** Goes past it. */
  pass(end: number): void {
    this.#at = end;
  }
}

/** The text without what stands in fences. */
function withoutCode(text: string): string {
  return text
    .split(TICKS)
    .filter((_, index) => index % 2 === 0)
    .join('\n');
}
