/** Every text of a JSON value, in place. */
import type { Json } from './json.ts';

/**
 * The value with each text in it, keys too, put through `change`; the same value where none has changed. References between calls
 * (`$from`) keep their key.
 */
export function mapTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === 'string') return change(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    const changed = items.map((item) => mapTexts(item, change));
    return changed.every((item, index) => item === items[index]) ? value : Object.freeze(changed);
  }
  const fields = Object.entries(value);
  const changed = fields.map(([key, field]): [string, Json] => [change(key), mapTexts(field, change)]);
  const isSame = changed.every(([key, field], index) => key === fields[index]?.[0] && field === fields[index]?.[1]);
  return isSame ? value : Object.freeze(Object.fromEntries(changed));
}
