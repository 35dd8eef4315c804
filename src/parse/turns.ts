/** Where a model's own turn begins and ends in its text: thinking before it, made-up turns of others after it. */
import { type ParseWork, seek } from './reader.ts';

const THOUGHT = /<(think|thinking|reasoning|reflection|scratchpad)>/y;

/** Where the thinking that opens at `at` ends. */
export function thoughtEnd(text: string, at: number, work: ParseWork): number | undefined {
  THOUGHT.lastIndex = at;
  const match = THOUGHT.exec(text);
  if (match === null) return undefined;
  const closing = `</${match[1]}>`;
  const end = seek(work, text, closing, at);
  if (end >= 0) return end + closing.length;
  return match[1] === 'think' ? text.length : undefined;
}

const OPEN_THOUGHT = /<(think|thinking|reasoning|reflection|scratchpad)>/g;

/** The text without thinking, or nothing when it ends inside of it. */
export function withoutThoughts(text: string): string | undefined {
  let words = '';
  let at = answerStart(text);
  for (;;) {
    OPEN_THOUGHT.lastIndex = at;
    const match = OPEN_THOUGHT.exec(text);
    if (match === null) return words + text.slice(at);
    const closing = `</${match[1]}>`;
    const end = text.indexOf(closing, match.index);
    if (end < 0) return undefined;
    words += text.slice(at, match.index);
    at = end + closing.length;
  }
}

/** Where the text goes on after thinking that has an end but no beginning; 0 without such thinking. */
export function answerStart(text: string): number {
  const end = text.indexOf('</think>');
  return end >= 0 && !text.slice(0, end).includes('<think>') ? end + 8 : 0;
}

const TURN =
  /(?:Observation\s?:|Human\s?:|User\s?:|Question\s?:|#{2,4}\s?(?:Instruction|Question|Human|User|Input)\b|<\|im_start\|>\s?(?:user|system|tool)|<\|start_header_id\|>\s?(?:user|system|tool|ipython)|<\|(?:user|observation)\|>|<tool_response>|<(?:tool_result|user_message|runtime_note)\b)/y;

const PROGRAM = /(?:def \w+\s?\(|import \w|from [\w.]+ import |class \w+\s?[:(]|assert |if __name__)/y;

/** Whether a line of a program begins here. Behind a call, what follows is a test or an explanation. */
export function programStart(text: string, at: number): boolean {
  PROGRAM.lastIndex = at;
  return PROGRAM.test(text);
}

/** Whether another's turn begins here, which the model has no business to write. */
export function turnEnd(text: string, at: number): boolean {
  TURN.lastIndex = at;
  return TURN.test(text);
}

/** Only brackets, a fence or a tag stand before it. */
export function opensText(text: string, start: number): boolean {
  return start < 400 && /^(?:```\w{0,12}|<[^<>]{1,40}>|[\s[({"'])*$/.test(text.slice(0, start));
}

/** Only brackets, a fence or a tag stand behind it. */
export function endsText(text: string, end: number): boolean {
  return text.length - end < 400 && /^(?:```|<[^<>]{1,40}>|[\s\])}"';.])*$/.test(text.slice(end));
}

/**
 * Where the next value may begin, from `from` on: a value inside a thought does not count.
 * @param opener global; has `<` among what it finds, with which thoughts begin.
 */
export function nextOpener(text: string, opener: RegExp, from: number, work: ParseWork): number | undefined {
  opener.lastIndex = from;
  for (;;) {
    const at = work.left > 0 ? opener.exec(text)?.index : undefined;
    if (at === undefined || text[at] !== '<') return at;
    work.left -= 1;
    opener.lastIndex = thoughtEnd(text, at, work) ?? at + 1;
  }
}
