/** What a program takes from its surroundings without asking for it, in the hands of a seed while one history is played. */
import { seededRandom } from '../seeded-random.ts';

const HEX = '0123456789abcdef';

export class SeededAmbient {
  readonly #immediates: (() => void)[] = [];
  readonly #unhandled: unknown[] = [];
  readonly #before = { random: Math.random, now: Date.now, setImmediate: globalThis.setImmediate };

  constructor(seed: number, now: () => number) {
    if (Object.hasOwn(crypto, 'randomUUID'))
      throw new Error('A history is being played in this thread. Await its end first.');
    const random = seededRandom(seed);
    process.on('unhandledRejection', this.#note);
    Math.random = random;
    Date.now = now;
    Object.defineProperty(performance, 'now', { configurable: true, value: now });
    const later = (act: (...args: unknown[]) => void, ...args: unknown[]): void =>
      void this.#immediates.push(() => act(...args));
    globalThis.setImmediate = later as unknown as typeof globalThis.setImmediate;
    Object.defineProperty(crypto, 'randomUUID', { configurable: true, value: () => uuid(random) });
  }

  /** Lets everything go on that does not wait for the clock. */
  async settle(): Promise<void> {
    await drained();
    while (this.#immediates.length > 0) {
      for (const act of this.#immediates.splice(0)) act();
      await drained();
    }
  }

  /** @returns rejections that nobody handled. */
  async restore(): Promise<readonly unknown[]> {
    Math.random = this.#before.random;
    Date.now = this.#before.now;
    globalThis.setImmediate = this.#before.setImmediate;
    // The methods of the prototypes are in sight again.
    Reflect.deleteProperty(performance, 'now');
    Reflect.deleteProperty(crypto, 'randomUUID');
    // Rejections are reported when the event loop goes round.
    await new Promise<void>((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', this.#note);
    return this.#unhandled;
  }

  readonly #note = (reason: unknown): void => void this.#unhandled.push(reason);
}

/** A tick comes only when no promise has anything left to do. */
function drained(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

function uuid(random: () => number): `${string}-${string}-${string}-${string}-${string}` {
  let hex = '';
  while (hex.length < 32) hex += HEX[Math.floor(random() * 16)];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
