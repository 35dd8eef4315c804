/**
 * Words that hold a call back: they wait for leave, make it depend on something, or disown it. They count before what sounds
 * like setting out ("Reply yes and I will send:"). Refused are waiting that is somebody else's ("The customer is waiting.") and
 * leave that was given or is not needed ("Thanks for the confirmation.", "It needs no approval.").
 */

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

export function holdsBack(sentence: string): boolean {
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
export function isPlainStatement(sentence: string): boolean {
  if (OUTSIDE_LATIN.test(sentence) || ACT_IS_OVER.test(sentence)) return false;
  if (count(sentence, ENGLISH) > count(sentence, OTHER)) return true;
  return isSetOutElsewhere(sentence);
}

/** Whether a sentence in another language than English says that something is being done at once. */
export function isSetOutElsewhere(sentence: string): boolean {
  return (AT_ONCE.test(sentence) || OTHER_DOING.test(sentence)) && !OTHER_HOLDING.test(sentence);
}

function count(sentence: string, pattern: RegExp): number {
  return sentence.match(pattern)?.length ?? 0;
}
