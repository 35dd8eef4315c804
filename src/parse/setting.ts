/** What kind of text a call stands in: a reply that acts, or one that documents, offers, asks or repeats what others wrote. */

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
export function isNoPlaceForCalls(before: string): boolean {
  return MANUAL.test(before) || ALTERNATIVES.test(before) || UNSUITABLE.test(before);
}

/** Two speak in turn. */
export function isDialogue(text: string): boolean {
  if (TURN.test(text)) return true;
  const turns = [...text.matchAll(SPEAKER)].map(([, name]) => name);
  const speakers = new Set(turns);
  return speakers.size === 2 && turns.length > 2;
}

export function asksFirst(before: string): boolean {
  return ASKING.test(before);
}

/** Whether the reply ends by asking whether it may, or, with `any`, by asking anything. */
export function endsAsking(text: string, any: boolean): boolean {
  const question = ENDS_WITH_QUESTION.exec(text.slice(-400))?.[0];
  return question !== undefined && (any || PERMISSION.test(question));
}

/** Languages in which no model calls tools. */
const OTHER_LANGUAGE =
  /^(?:bash|sh|shell|zsh|console|powershell|diff|patch|graphql|proto|protobuf|sql|yaml|yml|toml|ini|conf|csv|html|dockerfile|http|go|golang|rust|c|cpp|csharp|kotlin|swift|php|ruby|scala|haskell|perl|latex|markdown|md|mermaid|log)$/i;

export function isOtherLanguage(fence: string | undefined): boolean {
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
export function isInBody(text: string, at: number): boolean {
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

export function isTakenBack(after: string): boolean {
  return TAKEN_BACK.test(after);
}

const LESSON = /\b(?:homework|exercise|quiz|(?:in|of) (?:today's|this|our|the) (?:lesson|lecture|lab))\b/i;

/** Somebody is taught. */
export function isLesson(words: string): boolean {
  return LESSON.test(words);
}

/**
 * Whether a call stands in a line that repeats something: a quotation, a comment, a console, a table, a stack of frames, a page.
 * @param lead what stands before it on its line, `tail` what stands behind it, `near` what stands before it in all.
 */
export function isEchoed(lead: string, tail: string, near: string): boolean {
  const isRow = /^\s*\|/.test(lead) && /\|\s*$/.test(tail);
  const isQuoted = (lead.split('"').length % 2 === 0 || lead.includes('\u201c')) && QUOTING.test(lead);
  if (DEFERRED.test(lead) || (ASSERTING.test(lead) && COMPARED.test(tail)) || OPEN_ELEMENT.test(near)) return true;
  return isRow || isQuoted || ECHO.test(lead) || FRAME.test(near) || PAGE.test(near);
}
