/**
 * What the words before a call say of it. The sentences are read from the last one backwards, and the first that says
 * anything decides: "I would not refund it unseen. Let me look at the order:" makes the call.
 */

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

// Words that hold a call back: they wait for leave, make it depend on something, or disown it. They count before what sounds
// like setting out ("Reply yes and I will send:"). Refused are waiting that is somebody else's ("The customer is waiting.") and
// leave that was given or is not needed ("Thanks for the confirmation.", "It needs no approval.").

/** What somebody gives who lets a call happen. */
const LEAVE =
  "(?:confirmations?|approvals?|permission|consent|go-?ahead|green light|sign-?off|authori[sz]ation|clearance|say-so|(?:your|an|the (?:user|customer|manager|owner)'s|their|his|her) (?:ok(?:ay)?|yes|word|leave|agreement|answer|reply|response|decision|review|choice))";

const NOT_NEEDED =
  /\b(?:needs?|requires?) no\b|\bno\b[^.!?]{0,30}\b(?:needed|required|necessary)\b|\b(?:do|does|is)(?:n't| not) (?:need|require)/i;
const NEEDS_LEAVE = new RegExp(
  `\\b(?:need\\w*|requir\\w*|without|lack\\w*|missing|pending|subject to|depends? on|until|unless|no|(?:do|does|did)(?:n't| not) have|seek\\w*|ask\\w* for|request\\w*|wait\\w* (?:for|on)|await\\w*|upon|after|(?<!\\bthank(?:s| you)[^.!?]{0,20} )for)\\b[^.!?]{0,30}\\b${LEAVE}\\b`,
  'i',
);
const WAITS =
  /(?:^\W*|\b(?:i|we)(?:'m|'ll|'re| am| are| will| shall| must| should| have to)? (?:\w+ )?)(?:wait(?:ing)?|await(?:ing)?|paus(?:e|ing)|hold(?:ing)? (?:off|back|on)|stand(?:ing)? by)\b|^\W*(?:pending|on hold|not (?:yet|now|today))\b|\bnot?(?:body| one)\b[^.!?]{0,20}\b(?:has|have|agreed|approved|confirmed)\b|\b(?:not|n't|never)(?: yet| been)* (?:approved|confirmed|authori[sz]ed|agreed|permitted|cleared|signed)\b|^\W*(?:i|we) only\b|\bonly\b[^.!?]{0,40}\b(?:after|when|if|once|with)\b/i;
/** "Reply yes and I will send", "Please check the amount". */
const ASKS_TO =
  /(?:^\W*|\b(?:please|just|simply|you|must|should|can|and|or)\s+)(?:reply|answer|respond|say|type|write|tell me|let me know|confirm|approve|click|press|give me|sign)\b[^.!?]{0,60}(?:\b(?:and|then) (?:i|we)\b|(?:,|\b(?:and|then|to))\s[^.!?]{0,20}\b(?:i|we|this|it)(?:'ll| will| shall| can| goes| is)\b)|^\W*(?:(?:please|kindly) (?:confirm|approve|check|verify|review|decide|sign|choose|pick|let me know|tell|say|reply|answer)|let me know|tell me|reply|respond)\b/i;
const DEPENDS =
  /\b(?:after|once|when|before|until|as soon as)\b[^.!?,]{2,60}\b(?:has|have|is|are)\b[^.!?]*\b(?:i|we)(?:'ll| will| shall)\b|\b(?:will|'ll|shall)\b[^.!?]*\b(?:later|tomorrow|next (?:week|month))\b|^\W*(?:tomorrow|later|next (?:week|month)),? (?:i|we)\b/i;
const DISOWNS =
  /(?:^\W*|\b(?:i|we)(?:'ve|'m|'ll| have| am| will)? (?:\w+ )?)(?:ignor(?:e|ed|ing)|disregard\w*|dismiss\w*|discard\w*|reject\w*|withdr[aeo]w\w*|withh[eo]ld\w*)\b|\b(?:injected|injection|malicious)\b|\b(?:was|were) (?:about|going) to\b|\b(?:i|we)(?: would|'d) have\b|\bworst\b|\b(?:caused|triggered) by\b|\bhad (?:\w+ )?(?:sent|called|made|run|issued|written)\b/i;

function holdsBack(sentence: string): boolean {
  if (WAITS.test(sentence) || ASKS_TO.test(sentence) || DEPENDS.test(sentence) || DISOWNS.test(sentence)) return true;
  return NEEDS_LEAVE.test(sentence) && !NOT_NEEDED.test(sentence);
}

/** An act that is over: "The refund went out a minute ago." */
const ACT_IS_OVER =
  /\b(?:refund|payment|transfer|calls?|e-?mail|message|block|command|it|this|that|everything|all)\b[^.!?]{0,20}\b(?:went|gone|succeeded|worked|(?:was|were|is|are|got) (?:\w+ )?(?:sent|paid|made|refunded|executed|issued|submitted|carried out|performed|completed|accepted|done|finished|complete))\b|^\W*(?:sent|paid|refunded|executed|submitted|completed|finished|success\w*)\b/i;

const ENGLISH =
  /\b(?:the|and|of|it|its?|it's|you|your|this|that|with|from|has|have|had|are|were|was|is|there|now|needs?|moment|sure|ok|okay|understood|alright|right|thanks|thank|got|let|let's|next|first|going|one|step|not|no|to|for|be|been|on|in|at|by|an?|allows?|\w+ing)\b|\bi(?:'ll|'m|'ve)?(?= \w)/gi;
const OTHER =
  /\b(?:der|die|das|dem|den|und|ich|wir|sie|ist|ein|eine[mnr]?|auf|f[üu]r|mit|zur?|von|nicht|kein\w*|erst|le|la|les|un|une|je|j'\w+|vous|ne|pas|est|et|que|pour|el|los|las|una|para|por|con|se|su|uma?|não|o|os|il|di|per|che|non|mi|de|het|een|ik|niet|dit|jag|att|och|inte|jeg|og|ikke|nie|bu|ve|i[çc]in)\b/gi;
const OUTSIDE_LATIN = /[^\P{L}\p{Script=Latin}]/u;
/** "At once", in the languages that are met most. */
const AT_ONCE =
  /\b(?:jetzt|nun|sofort|gleich|maintenant|tout de suite|ahora|agora|adesso|subito|nu|direct|nå|teraz)\b/i;
const OTHER_DOING =
  /\b(?:ich (?:sehe|schaue|pr[üu]fe|suche|hole|mache|erledige|lese)|je (?:vais|cherche|regarde|v[ée]rifie)|(?:vado|voy) a|vou|ik ga)\b/i;
/** What denies, waits or depends in them. */
const OTHER_HOLDING =
  /\b(?:nicht|nichts|kein\w*|nie\w*|ohne|erst|wenn|falls|sobald|wart\w*|ne|n'\w+|pas|sans|si|quand|attend\w*|jamais|sin|cuando|esper\w*|nunca|não|sem|quando|aguard\w*|non|senza|aspett\w*|attesa|niet|geen|zonder|als|wacht\w*|inte|ikke|freigabe\w*|best[äa]tig\w*|confirm\w*|zustimm\w*|approv\w*|autori\w*)\b/i;

/** Whether a statement before a block can be told to be one that says something else and stops. */
function isPlainStatement(sentence: string): boolean {
  if (OUTSIDE_LATIN.test(sentence) || ACT_IS_OVER.test(sentence)) return false;
  if (count(sentence, ENGLISH) > count(sentence, OTHER)) return true;
  return isSetOutElsewhere(sentence);
}

/** Whether a sentence in another language than English says that something is being done at once. */
function isSetOutElsewhere(sentence: string): boolean {
  return (AT_ONCE.test(sentence) || OTHER_DOING.test(sentence)) && !OTHER_HOLDING.test(sentence);
}

function count(sentence: string, pattern: RegExp): number {
  return sentence.match(pattern)?.length ?? 0;
}
