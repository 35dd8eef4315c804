/**
 * What the words before a call say of it: that it is made, or that it is only spoken of. The sentences are read from the
 * last one backwards, and the first that says either decides: "I would not refund it unseen. Let me look at the order:"
 * makes the call.
 */

/** More of the words is not looked at. */
const MOOD_CHARS = 1500;

/** Whether the words refuse, report, quote, ask for, suppose or show the call that stands behind them. */
export function speaksOfCall(prose: string): boolean {
  const words = prose.slice(-MOOD_CHARS).replaceAll('\u2019', "'");
  const sentences = words.replace(ABBREVIATION, 'eg').split(SENTENCE_END);
  for (const sentence of sentences.reverse()) {
    const verdict = verdictOf(sentence);
    if (verdict !== undefined) return verdict === 'spoken of';
  }
  return false;
}

const ABBREVIATION = /\be\.\s?g\.|\bi\.\s?e\./gi;
const SENTENCE_END = /(?<=[.!?。！？]["')*_]{0,3})\s+|\n\s*\n/;

function verdictOf(sentence: string): 'made' | 'spoken of' | undefined {
  if (SUPPOSED.test(sentence) || QUESTION.test(sentence) || ATTRIBUTED.test(sentence)) return 'spoken of';
  const denied = Math.max(lastMatch(sentence, DENIED), lastMatch(sentence, REPORTED));
  const meant = lastMatch(sentence, MEANT);
  if (meant > denied) return 'made';
  return denied >= 0 ? 'spoken of' : undefined;
}

function lastMatch(sentence: string, pattern: RegExp): number {
  let last = -1;
  for (const match of sentence.matchAll(pattern)) last = match.index;
  return last;
}

/** An example, a condition, something that is shown. */
const SUPPOSED =
  /\b(?:for (?:example|instance)|eg|examples?|hypothetical\w*|suppos\w+|imagin\w+|assum(?:e|ing)|say you|let's say|illustrat\w+|demonstrat\w+|templates?|placeholders?|sample|syntax|format|would|could|might|if|unless|whether|once (?:you|i|we|they)|when (?:you|they)|in case|like (?:this|so|the following)|looks? like|as follows|how (?:to|it|you|one|this|the|an?|i))\b|zum Beispiel|\bz\. ?B\.|\bwürde\b|\bwenn\b|par exemple|\bpor ejemplo\b|\bpor exemplo\b|\bper esempio\b|例如|比如|たとえば|例えば/i;

const QUESTION = /[?？]["')*_\s]*$/;

/** Words of somebody else, before a colon or an open quotation. */
const ATTRIBUTED =
  /\b(?:says?|said|wr[io]tes?|written|reads?|states?|stated|shows?|showed|contain(?:s|ed)|returns?|returned|repl(?:y|ies|ied)|answer(?:s|ed)|tells?|told|suggest(?:s|ed)|asks?|asked|according to|quot(?:e|es|ed|ing)|recommend(?:s|ed)|documentation|docs|readme|page|log|logs|result|output|message|response|e-?mail|instructions?)\b[^.!?]{0,80}[:,]\s*["'“„«]?\s*$/i;

const DENIED =
  /\b(?:(?:do|does|did|will|shall|should|must|may|can|need|am|are|is)(?: not|n't)|cannot|can not|won't|can't|shan't|'m not|never|no longer|instead of|rather than|refus\w+|declin\w+|avoid\w*|unable to|no need|not (?:going|allowed|able|permitted|to|call\w*|run\w*|execut\w*|invok\w*)|without \w+ing|stop(?:ped)?|forbid\w*|forbidden|prohibited)\b(?!\s+(?:yet |actually |really |quite )?(?:know|have|see|sure|certain|find|remember|understand|contain|say|tell|include|exist))|\b(?:nicht|kein\w*|niemals|jamais|ne .{1,40} pas|nunca|não|nao)\b|不要|不会|ない/gi;

/** Something that is over. */
const REPORTED =
  /\b(?:i|we)(?: have|'ve)?(?: just| already| also| then| previously| now)? (?:called|ran|run|used|made|sent|issued|executed|invoked|did|done|tried|submitted|performed|placed|booked|refunded|\w+ed)\b|\b(?:done|already|previous(?:ly)?|earlier|before|as (?:i|we) (?:said|wrote|showed|did|mentioned)|as (?:said|shown|mentioned|above)|again|recap|summary|so far|the call was|was called|were called|has been|have been|history|transcript)\b/gi;

/** Something that the model sets out to do. */
const MEANT =
  /\b(?:i(?:'ll| will| shall| am going to|'m going to)(?: now| then| next| first| also| just)?|let me(?: now| first| just| also)?|let's|(?:i'm|i am)(?: now)?(?= \w+ing\b))(?! (?:not|never|know|explain|show|illustrate|demonstrate|give|walk|summari[sz]e|repeat|quote|recap|describe|note|say|tell|wait|wonder|think|assum|imagin|hop|refus|declin|avoid|hold|ask)\w*)/gi;
