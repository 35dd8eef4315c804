/**
 * What the words before a call say of it. The sentences are read from the last one backwards, and the first that says
 * anything decides: "I would not refund it unseen. Let me look at the order:" makes the call.
 */

import { holdsBack, isPlainStatement, isSetOutElsewhere } from './holding.ts';

/**
 * - `made`: the model sets out to do it.
 * - `shown`: it says how such a call looks. Many models write the calls that they mean in this way.
 * - `spoken of`: it refuses, reports, quotes, asks for or supposes the call.
 */
export type Mood = 'made' | 'shown' | 'spoken of';

/** More of the words is not looked at. */
const MOOD_CHARS = 1500;

export function moodOf(prose: string): Mood | undefined {
  for (const [index, sentence] of sentencesOf(prose).entries()) {
    const mood = sentenceMood(sentence);
    if (mood !== undefined) return mood;
    if (index === 0 && DOING.test(sentence)) return 'made';
  }
  return undefined;
}

/**
 * Whether the words before a block make the call in it: none do, they set out to do something, or they say something else and
 * stop. Words that lead up to the block, with a colon or with "this", make it only if they say so.
 */
function leadsToCall(prose: string): boolean {
  const last = sentencesOf(prose)[0];
  if (last === undefined) return true;
  const mood = moodOf(prose);
  if (mood === 'shown' || mood === 'spoken of') return false;
  if (sentenceMood(last) === 'made') return true;
  // Any sentence may hold back what the last one does not set out to do: "I need your OK. Here is the call:"
  if (sentencesOf(prose).some(holdsBack)) return false;
  if (INTRODUCING.test(last) || ASSENT.test(last) || BEING_DONE.test(last)) return true;
  return STATEMENT.test(last) && !POINTING.test(last) && isPlainStatement(last);
}

/**
 * Whether the words before a block in the taught form set out to make the call: none do, or one of their sentences says that something
 * will be done, is being done or is agreed to. Words that only state something are not enough: "It is up to you."
 */
export function setsOut(prose: string): boolean {
  if (!leadsToCall(prose)) return false;
  const sentences = sentencesOf(prose);
  const last = sentences[0];
  if (last === undefined || INTRODUCING.test(last) || isSetOutElsewhere(last)) return true;
  if (ASSENT.test(last)) return true;
  return sentences.some(
    (sentence) => sentenceMood(sentence) === 'made' || BEING_DONE.test(sentence) || AGREES.test(sentence),
  );
}

/** "Refunding 90 now.", but not "Nothing was found." */
const BEING_DONE =
  /^[^\p{L}\d]*(?!(?:no|any|some|every)thing\b|(?:dur|accord|regard|pend|miss|be|morn|even|assum|suppos|imagin|refus|declin|avoid|quot|follow|wait|await|ask|us|ignor|reject|hav)ing\b)\w{2,}ing\b[^.!?]*[.!:]?\s*$/iu;
/** "I can do that.", "so I go ahead", "I refund it now." */
const AGREES =
  /\bi (?:can(?: now)? (?:(?:now )?(?:do|help|handle|take care|go on|proceed)\b|[^\p{L}\d]*$)|(?:(?:now|then|first|next|therefore|also|thus|so|just) )?(?:go ahead|go on|refund|pay|send|make|call|run|do|start|begin|look|check|get|fetch|use|issue|create|search|submit|open|book|set|transfer|delete|update|order|move|write|post|add|remove|process|handle|execute|proceed|continue|retry|try|query|repeat)\b(?! (?:not|no|only)\b))|\bi(?:'d| would) be (?:happy|glad) to\b|\bhere goes\b|\bi(?:'m| am) \w+ing\b/iu;
/** "Sure, one moment." */
const ASSENT =
  /^[^\p{L}\d]*(?:sure(?: thing)?|certainly|of course|absolutely|ok(?:ay)?|all ?right|right away|will do|(?:i'm )?on it|understood|got it|yes|gladly|with pleasure|one (?:moment|second)|just a (?:moment|second)|going ahead|here (?:it|we )?goe?s?)(?:[,!]? (?:please|sir|madam|thanks|thank you|one (?:moment|second)|right away|now|at once))*[^\p{L}\d]*$/iu;

/** The last one first. */
function sentencesOf(prose: string): string[] {
  const words = prose.slice(-MOOD_CHARS).replaceAll('\u2019', "'").replace(ABBREVIATION, 'eg');
  return words
    .split(SENTENCE_END)
    .filter((sentence) => /[\p{L}\d]/u.test(sentence))
    .reverse();
}

/** "Calling the tool now:". */
const DOING =
  /^\W*(?:(?:ok(?:ay)?|sure|certainly|now|first|next|then|so)\W+)*(?!assum|suppos|imagin|accord|refus|declin|avoid|quot|follow|wait|ask|us)\w+ing\b[^.!?]*:\s*$/i;
const STATEMENT = /[.!。！]["')*_\s]*$/;
const POINTING =
  /\b(?:this|these|the following|below|(?:that|the|such an?|an?|my|its?) (?:\w+ )?(?:calls?|command|request|block|snippet))\b/i;
const INTRODUCING =
  /^[^\p{L}\d]*(?:(?:ok(?:ay)?|sure|certainly|now|first|next|then|so|thus|therefore|finally|great|all ?right)[^\p{L}\d]+)*(?:(?!assum|suppos|imagin|accord|refus|declin|avoid|quot|follow|wait|ask|(?:no|any|some|every)thing\b)\w+ing\b[^.!?]*|(?:(?:here (?:is|are|comes?)|here's|this is|these are|making|based on [^.!?:]{1,60}) )?(?:the |my |a )?(?:next |first |last |right |needed |necessary |required )?(?:(?:function|tool) )?(?:calls?|action)(?: (?:is|are|that you asked for|for (?:this|it|that)))?|here (?:it|we) goe?s?|(?:i|we)(?: now| then| first)? (?:make|call|run|send|do|start|begin|look|check|get|fetch|use|issue|create|search|read|open|submit)\b[^.!?:]*:)?[\s:,*]*$/iu;

const ABBREVIATION = /\be\.\s?g\.|\bi\.\s?e\./gi;
const SENTENCE_END = /(?<=[.!?。！？]["')*_]{0,3})\s+|\n\s*\n/;

function sentenceMood(sentence: string): Mood | undefined {
  if (LABEL.test(sentence) || holdsBack(sentence)) return 'spoken of';
  if (CONDITION.test(sentence) || QUESTION.test(sentence) || ATTRIBUTED.test(sentence)) return 'spoken of';
  const denied = Math.max(lastMatch(sentence, DENIED), lastMatch(sentence, REPORTED));
  const meant = lastMatch(sentence, MEANT);
  if (denied > meant) return 'spoken of';
  if (EXAMPLE.test(sentence)) return 'shown';
  if (meant >= 0) return 'made';
  return MANNER.test(sentence) ? 'shown' : undefined;
}

function lastMatch(sentence: string, pattern: RegExp): number {
  let last = -1;
  for (const match of sentence.matchAll(pattern)) last = match.index;
  return last;
}

/** A heading of one word or two that shows something, or calls it wrong. */
const LABEL =
  /(?:^|\n)\W{0,4}(?:before|after|old|new|wrong|right|correct|incorrect|bad|good|expected|actual|(?:reply|answer|response|option|candidate|variant|version|output|sample|test|case) (?:\d{1,2}|[a-z])|draft|dry run|usage|signature|syntax|definition|schema|history|diff|not this|don't|do)\W{0,4}:\W*$|\b(?:wrong|incorrect|invalid|broken|mistaken?|malformed)\b[^.!?]{0,60}:\s*$/i;

const CONDITION =
  /\bif (?:you|they|s?he)\b|\bif (?:we|i|it|there) (?:had|were|was)\b|\bif (?!we\b|i\b).*\b(?:would|will|could|might|'ll)\b|\b(?:once|when|until|unless|as soon as|in case) (?:you|we|they|it|there)\b|\b(?:suppos\w+|imagin(?:e|ing)|hypothetical\w*|provided that|say you)\b|\bwenn (?:du|Sie)\b|\bsi (?:vous|tu|me|confirm\w*)\b|\bse (?:mi|tu|lei|me|você|conferm\w*|confirm\w*)\b/is;

/** An example, or what a call would look like. */
const EXAMPLE =
  /\b(?:for (?:example|instance)|eg|an example|examples?(?: (?:of|call|usage|request|code|invocation|json)|:)|sample (?:call|request|code|invocation|json|of)|illustrat\w+|demonstrat\w+|(?:would|could|might|may) (?:look|be|then be)|(?:looks?|like) (?:like )?(?:this|so)\b|looks? like)|zum Beispiel|\bz\. ?B\.|\bw[üu]rde\b|\bkönnte\b|par exemple|\bpourrait\b|\bpor ejemplo\b|\bpor exemplo\b|\bper esempio\b|例如|比如|たとえば|例えば/i;

/** What somebody may do, and how. */
const MANNER =
  /\b(?:(?:you|one|it|this|that|we|they|which|function|tool|call|request)(?:'d| (?:can|could|would|might|may|should|need|have to|must))|(?:would|could|might) (?:\w+ )?(?:call|use|run|do|write|have|need|send|pass|make)|how (?:it|you|one|this|that|we|to)|in (?:the|this|json|python|that) (?:\w+ )?(?:format|form|syntax|style|shape)|syntax|templates?|format|form|shape|expects?)\b/i;

const QUESTION = /[\p{L}\d)"'`\]]\s?[?？]["')*_\s]*$/u;

/** Words of somebody else, before a colon or an open quotation. */
const ATTRIBUTED =
  /\b(?:agent|model|assistant|client|server|runtime|user|program|caller) (?:\w+ )?(?:\w+ )?(?:writes?|wrote|sends?|sent|calls?|called|emit(?:s|ted)?|produced?s?|returns?|generate[sd]?|outputs?)\b|\b(?:says?|said|wrote|written|reads?|stated|showed|contained|replied|answered|told (?:me|us)|ends with|suggested|(?<!\byou )asked|according to|quot(?:e|es|ed|ing)|recommended|documentation|docs|readme|logs?|e-?mail)\b[^.!?]{0,80}[:,]\s*["'“„«]?\s*$/i;

const DENIED =
  /\b(?:(?:do|did|will|shall|should|must|can|would|could)(?: not|n't)|cannot|can not|won't|can't|shan't|(?:am|'m|are|is) not (?:going|allowed|able|permitted|to)|never|no longer|instead of|rather than|refus\w+|declin\w+|avoid\w*|no need|not (?:call\w*|run\w*|execut\w*|invok\w*)|without (?:call|runn|execut|invok|ask|confirm)ing|forbidden|prohibited)\b(?!\s+(?:yet |actually |really |quite )?(?:know|have|see|sure|certain|find|remember|understand|contain|say|tell|include|exist|directly)\b)(?<!\b(?:can't|(?:can|could|do)(?: not|n't))(?= (?:execute|run|access|perform)\b)|\bcannot(?= (?:execute|run|access|perform)\b))|\b(?:nicht|niemals|jamais|nunca|não|n(?:e |')[^.!?]{1,40} pas|no voy a|non (?:eseguo|eseguir[òo]|invio)|nie wykonam)\b|(?<!\p{L})(?:не|нельзя)(?!\p{L})|不要|不会|不需要/giu;

/** Something that is over. */
const REPORTED =
  /\b(?:i|we)(?: have|'ve)?(?: just| already| also| then| previously)? (?:called|ran|run|used|made|sent|issued|executed|invoked|did|done|tried|submitted|performed|placed|booked|refunded)\b|\b(?:done|already|previous(?:ly)?|earlier|as (?:i|we) (?:said|wrote|showed|did|mentioned)|as (?:said|mentioned|shown (?:above|before|earlier))|recap|(?<!\bbe )(?:made|ran|sent|issued) [^.!?]{0,20}\b(?:calls?|requests?)\b|the call was|was called|were called|has been|have been|had been|transcript|archive)\b/gi;

/** Something that the model sets out to do. */
const MEANT =
  /\b(?:i(?:'ll| will| shall| am going to|'m going to)(?: now| then| next| first| also| just)?|let me(?: now| first| just| also)?|let's|(?:i'm|i am)(?: now)?(?= \w+ing\b)|i (?:need|have(?= to\b)|want|must)(?: to)?(?! (?:you|your|a confirm|confirm|approv|permission|already|been)))(?! (?:not|never|know|explain|show|illustrate|demonstrate|give|walk|summari[sz]e|repeat|quote|recap|describe|note|say|tell|wait|wonder|think|assum|imagin|hop|refus|declin|avoid|hold|provide|guide)\w*| ask(?:ing)? (?:you|them|him|her|for|if|whether))/gi;
