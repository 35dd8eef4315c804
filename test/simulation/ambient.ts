/** What a program takes from its surroundings without asking for it, in the hands of a seed while one history is played. */
import { type ProcessSurroundings, SURROUNDINGS } from '#runtime';
import { seededRandom } from '#testing';
import { runningProcess } from './process.ts';
import type { SimulatedTime } from './time.ts';

const HEX = '0123456789abcdef';

/** What is done in the next turn of the event loop, unless it is cleared before. */
interface Immediate {
  act: () => void;
}

export class SeededAmbient {
  readonly #immediates: Immediate[] = [];
  readonly #unhandled: unknown[] = [];
  readonly #before = {
    random: Math.random,
    now: Date.now,
    setImmediate: globalThis.setImmediate,
    clearImmediate: globalThis.clearImmediate,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    surroundings: Object.getOwnPropertyDescriptors(SURROUNDINGS),
  };

  constructor(seed: number, time: SimulatedTime) {
    if (Object.hasOwn(crypto, 'randomUUID'))
      throw new Error('A history is being played in this thread. Await its end first.');
    const random = seededRandom(seed);
    process.on('unhandledRejection', this.#note);
    Math.random = random;
    Date.now = () => runningProcess()?.wallMs() ?? time.now();
    const steady = (): number => runningProcess()?.steadyMs() ?? time.now();
    Object.defineProperty(performance, 'now', { configurable: true, value: steady });
    const later = (act: (...args: unknown[]) => void, ...args: unknown[]): Immediate => {
      const immediate = { act: inSameProcess(() => act(...args)) };
      this.#immediates.push(immediate);
      return immediate;
    };
    globalThis.setImmediate = later as unknown as typeof globalThis.setImmediate;
    const forget = (immediate?: Immediate): void => {
      if (immediate !== undefined) immediate.act = () => {};
    };
    globalThis.clearImmediate = forget as unknown as typeof globalThis.clearImmediate;
    takeOverIntervals(time);
    Object.defineProperties(SURROUNDINGS, surroundingsOfRunning());
    Object.defineProperty(crypto, 'randomUUID', { configurable: true, value: () => uuid(random) });
  }

  /** Lets everything go on that does not wait for the clock. */
  async settle(): Promise<void> {
    await drained();
    while (this.#immediates.length > 0) {
      for (const immediate of this.#immediates.splice(0)) immediate.act();
      await drained();
    }
  }

  /** @returns rejections that nobody handled. */
  async restore(): Promise<readonly unknown[]> {
    Math.random = this.#before.random;
    Date.now = this.#before.now;
    globalThis.setImmediate = this.#before.setImmediate;
    globalThis.clearImmediate = this.#before.clearImmediate;
    globalThis.setInterval = this.#before.setInterval;
    globalThis.clearInterval = this.#before.clearInterval;
    Object.defineProperties(SURROUNDINGS, this.#before.surroundings);
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

/** What is done later is done as whoever asked for it. */
function inSameProcess(act: () => void): () => void {
  const process = runningProcess();
  return process === undefined ? act : () => process.within(act);
}

interface Interval {
  stop: () => void;
  unref(): Interval;
}

/** What asks again and again does so in virtual time. */
function takeOverIntervals(time: SimulatedTime): void {
  const set = (act: () => void, everyMs: number): Interval => {
    const owner = runningProcess();
    const bound = inSameProcess(act);
    const interval: Interval = { stop: (): void => {}, unref: () => interval };
    const tick = (): void => {
      // Whoever stands still does it once, when it wakes up.
      if (owner !== undefined && owner.sleepsMs > 0) {
        interval.stop = owner.whenAwake(tick);
        return;
      }
      next();
      bound();
    };
    const next = (): void => {
      interval.stop = time.after(everyMs, tick);
    };
    next();
    return interval;
  };
  globalThis.setInterval = set as unknown as typeof globalThis.setInterval;
  const clear = (interval?: { stop: () => void }): void => interval?.stop();
  globalThis.clearInterval = clear as unknown as typeof globalThis.clearInterval;
}

/** Nobody is known to be dead where nobody is asked about. */
const NOWHERE: ProcessSurroundings = {
  host: 'simulated',
  pid: 1,
  boot: undefined,
  pidNamespace: undefined,
  startOf: () => undefined,
};

/** Each process sees its own machine. */
function surroundingsOfRunning(): PropertyDescriptorMap {
  const here = (): ProcessSurroundings => runningProcess()?.surroundings ?? NOWHERE;
  const get = <K extends keyof ProcessSurroundings>(name: K): PropertyDescriptor => ({
    configurable: true,
    enumerable: true,
    get: () => here()[name],
  });
  return {
    host: get('host'),
    pid: get('pid'),
    boot: get('boot'),
    pidNamespace: get('pidNamespace'),
    startOf: { configurable: true, enumerable: true, value: (pid: number) => here().startOf(pid) },
  };
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
