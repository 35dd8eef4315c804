/** One number for the facts that hold, kept in the state itself, so that it is taken back with them. */
import type { HtnState } from '../state.ts';

export const FINGERPRINT_TABLE = ':fingerprint';
const KEY = 'facts';
/** Sums of numbers below it are exact. */
const RANGE = 2 ** 52;

export function fingerprintOf(facts: Iterable<string>): [key: string, value: number][] {
  let sum = 0;
  for (const fact of facts) sum = (sum + hashOf(fact)) % RANGE;
  return [[KEY, sum]];
}

export function fingerprint(state: HtnState): number {
  return Number(state.get(FINGERPRINT_TABLE, KEY));
}

/** Facts are `predicate object …`. The order in which they came and went makes no difference. */
export function changeFingerprint(
  state: HtnState,
  changes: readonly { readonly fact: string; readonly holds: boolean }[],
): void {
  let sum = fingerprint(state);
  for (const { fact, holds } of changes) sum = (sum + (holds ? hashOf(fact) : RANGE - hashOf(fact))) % RANGE;
  state.set(FINGERPRINT_TABLE, KEY, sum);
}

/** 52 bits: two multiplicative hashes of 32 bits side by side, mixed at the end. */
function hashOf(fact: string): number {
  let low = 0x9e3779b9;
  let high = 0x85ebca6b;
  for (let index = 0; index < fact.length; index += 1) {
    const code = fact.charCodeAt(index);
    low = Math.imul(low ^ code, 0x27d4eb2d);
    high = Math.imul(high ^ code, 0x165667b1);
  }
  low = Math.imul(low ^ (low >>> 15) ^ high, 0x2c1b3c6d);
  high = Math.imul(high ^ (high >>> 13) ^ low, 0x297a2d39);
  return ((high ^ (high >>> 16)) >>> 12) * 2 ** 32 + ((low ^ (low >>> 16)) >>> 0);
}
