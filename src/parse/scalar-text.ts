/** Numbers and booleans that were written as something else. */
import { evaluateArithmetic } from './code-reader.ts';
import { CodeText, isLooseList, type Loose, NumberText } from './loose-value.ts';

const DECIMAL = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?$/;
const GROUPED = /^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/;
const SUFFIXED = /^([-+]?(?:\d+\.?\d*|\.\d+))[lLfFdDn]$/;

/** Whether a text is a decimal number and nothing else. */
export function isDecimal(text: string): boolean {
  return DECIMAL.test(text);
}

/** The number that a value is or says; a list of one number counts as that number. */
export function numberIn(value: Loose): number | undefined {
  if (typeof value === 'number') return value;
  if (value instanceof NumberText) return value.value;
  if (value instanceof CodeText) return textNumber(value.text);
  if (typeof value === 'string') return textNumber(value.trim());
  const only = isLooseList(value) && value.length === 1 ? value[0] : undefined;
  return typeof only === 'number' ? only : undefined;
}

function textNumber(text: string): number | undefined {
  if (text.length > 400) return undefined;
  if (DECIMAL.test(text)) return Number(text);
  if (GROUPED.test(text)) return Number(text.replaceAll(',', ''));
  const suffixed = SUFFIXED.exec(text)?.[1];
  return suffixed === undefined ? evaluateArithmetic(text, true) : Number(suffixed);
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
  ['yes', true],
  ['no', false],
  ['1', true],
  ['0', false],
]);

/** The boolean that a value is or says. */
export function booleanIn(value: Loose): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const text = value instanceof CodeText || value instanceof NumberText ? value.text : value;
  if (typeof text !== 'string' && typeof text !== 'number') return undefined;
  return BOOLEANS.get(String(text).trim().toLowerCase());
}
