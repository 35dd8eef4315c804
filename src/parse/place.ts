/** Where in a reply a call stands: by itself, where calls are made, or inside of words that speak of it. */
import { jsonEquals } from '#core';
import type { FoundCall } from './found-call.ts';
import { isLooseObject, type Loose, looseToJson } from './loose-value.ts';
import { type Mood, moodOf, setsOut } from './mood.ts';
import { type ParseTool, requiredOf } from './names.ts';
import { isTemplate } from './placeholders.ts';
import { isSpaceCode, lineEnd } from './reader.ts';
import {
  asksFirst,
  endsAsking,
  isDialogue,
  isEchoed,
  isInBody,
  isLesson,
  isNoPlaceForCalls,
  isOtherLanguage,
  isTakenBack,
} from './setting.ts';
import { Surroundings, withoutCode } from './surroundings.ts';
import { opensText } from './turns.ts';

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
