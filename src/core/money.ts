/** Money as people write it, in US dollars, and as runs count it: in whole millionths of one, so that sums are exact. */
const MICRO_USD = 1_000_000;

/** Above this amount in dollars, a number was probably meant in another unit. */
const MOST_USD = 100_000;

/** Rounds to the nearest millionth. */
export function microUsdOf(usd: number): number {
  return Math.round(usd * MICRO_USD);
}

export function usdOf(microUsd: number): number {
  return microUsd / MICRO_USD;
}

/** Why the value is not a plausible amount of US dollars; `undefined` when it is. 0 is plausible. */
export function whyNoUsd(value: unknown): string | undefined {
  if (typeof value !== 'number' || !(value >= 0)) return 'give US dollars, a number from 0 up, or leave it out';
  if (value > 0 && value * MICRO_USD < 1)
    return 'that is less than a millionth of a US dollar; give more, or leave it out';
  if (value <= MOST_USD) return undefined;
  return `that is more than ${MOST_USD.toLocaleString('en')} US dollars; give the amount in dollars, not in cents or millionths`;
}
