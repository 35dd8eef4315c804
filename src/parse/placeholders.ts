/** Values that stand for others: what a template has where somebody is to put something in. */
import { CodeText, isLooseList, isLooseObject, type Loose } from './loose-value.ts';

/** Whether a value, or one inside it, is a placeholder as a whole. */
export function holdsPlaceholder(value: Loose): boolean {
  if (typeof value === 'string') return isPlaceholder(value);
  if (value instanceof CodeText) return isPlaceholder(value.text);
  if (isLooseList(value)) return value.some(holdsPlaceholder);
  return isLooseObject(value) && Object.values(value).some(holdsPlaceholder);
}

const MAX_CHARS = 200;
const TEMPLATE =
  /^(?:\.{3}|…|<[\w][\w .:/-]{0,60}>|\{\{?\s?[\w][\w .-]{0,60}\s?\}?\}|\$\{[\w.]{1,60}\}|\$[A-Z][A-Z_]{2,60}|\[(?:your|insert|the|user|enter|fill)[\w ,'-]{0,60}\]|%[\w]{2,40}%)$|\byour[_ -](?:\w+[_ -]){0,4}(?:here|key|token|id|name|value|path|file|query|url)$|(?:^|[/_\W])path[/_]to[/_]|^(?:insert|enter|put|fill in|replace with)[ _-].{2,60}\b(?:here|value|name)\b/i;
/** A tag of a page, which somebody may well look for. */
const MARKUP =
  /^<\/?(?:a|b|br|body|code|div|em|form|h[1-6]|head|hr|html|i|img|input|li|link|meta|ol|p|pre|q|script|span|strong|style|svg|table|tbody|td|th|title|tr|u|ul|video)>$/i;

function isPlaceholder(text: string): boolean {
  return text.length <= MAX_CHARS && TEMPLATE.test(text.trim()) && !MARKUP.test(text.trim());
}
