/**
 * From a seed to calls that wait, what people answer to them, and what happens outside. It goes by dice of its own: histories without waits are
 * what they were.
 */
import type { JsonObject } from '#core';
import { Dice } from './dice.ts';
import type { Act, Root, SignalAct } from './script.ts';
import { type Doing, SHARED_KEYS, type Shape } from './wait-args.ts';
import { LATER_KINDS, WAITING_KINDS } from './waiting-tools.ts';

const SHAPES: readonly [Shape, ...Shape[]] = ['number', 'text', 'pair', 'thing'];
const SLEEPS: readonly [number, ...number[]] = [0, 50, 400, 400, 1_500, 1_500, 8_000];

/** Writes calls that wait; `undefined` where a history has none. */
export class WaitWriter {
  readonly #dice: Dice;
  readonly #tools: readonly string[];
  /** How often a call is one that waits. */
  readonly #share: number;
  /** How often a key is one that others wait for too. */
  readonly #shared: number;

  constructor(dice: Dice) {
    this.#dice = dice;
    const all = [...Object.keys(WAITING_KINDS), ...Object.keys(LATER_KINDS)];
    this.#tools = dice.chance(0.4) ? all : dice.list(1, 4, () => dice.pick(all as [string]));
    this.#share = dice.pick([0.3, 0.6, 0.9]);
    this.#shared = dice.pick([0, 0.5, 0.9]);
  }

  static of(seed: number): WaitWriter | undefined {
    const dice = new Dice(seed * 53 + 11);
    return dice.chance(0.4) ? new WaitWriter(dice) : undefined;
  }

  /** Whether the next call is one that waits. */
  isNext(): boolean {
    return this.#dice.chance(this.#share);
  }

  call(id: string): { readonly tool: string; readonly args: JsonObject } {
    const tool = this.#dice.pick(this.#tools as [string]);
    return { tool, args: tool in LATER_KINDS ? this.#later(id) : this.#waiting(id) };
  }

  #waiting(id: string): JsonObject {
    const dice = this.#dice;
    let parts = 0;
    const does = dice.list(1, 4, () =>
      dice.list(1, dice.pick([1, 1, 2, 3]), () => {
        if (!dice.chance(0.35)) return this.#wait(id);
        parts += 1;
        return this.#part(parts);
      }),
    );
    const plain: unknown = does;
    return { id, does: plain as JsonObject[], ...dice.maybe(0.5, () => ({ catches: true })) };
  }

  #part(nth: number): Doing {
    const dice = this.#dice;
    return {
      part: `part${nth}`,
      ...dice.maybe(0.7, () => ({ ms: dice.pick([20, 150, 700, 2_500]) })),
      ...dice.maybe(0.05, () => ({ big: true })),
    };
  }

  #wait(id: string): Doing {
    const dice = this.#dice;
    const shape = dice.maybe(0.6, () => ({ shape: dice.pick(SHAPES) }));
    switch (dice.pick(['ask', 'ask', 'sleep', 'event', 'event'])) {
      case 'ask':
        return {
          ask: `What of ${id}?`,
          ...shape,
          ...dice.maybe(0.3, () => ({ expiresInMs: dice.pick([0, 200, 900, 4_000]) })),
        };
      case 'sleep':
        return { sleepMs: dice.pick(SLEEPS) };
      default:
        return {
          event: this.#key(),
          ...shape,
          ...dice.maybe(0.5, () => ({ timeoutMs: dice.pick([0, 200, 900, 4_000, 12_000]) })),
        };
    }
  }

  #key(): string {
    return this.#dice.chance(this.#shared) ? this.#dice.pick(SHARED_KEYS) : '';
  }

  #later(id: string): JsonObject {
    const dice = this.#dice;
    return {
      id,
      key: this.#key(),
      readyMs: dice.pick([0, 300, 2_000, 9_000]),
      ...dice.maybe(0.6, () => ({ ms: dice.pick([20, 150, 700]) })),
      ...dice.maybe(0.7, () => ({ pollEveryMs: dice.pick([100, 500, 2_500]) })),
      ...dice.maybe(0.3, () => ({ expiresInMs: dice.pick([0, 200, 3_000, 15_000]) })),
      ...dice.maybe(0.15, () => ({ pollFails: dice.pick(['once', 'always'] as const) })),
    };
  }

  /** What happens outside, whoever waits for it. */
  signals(roots: readonly Root[], workers: number): SignalAct[] {
    const dice = this.#dice;
    const tenants = roots.map(({ tenant }) => tenant) as [string];
    return dice.list(0, dice.pick([2, 5, 12]), () => ({
      at: dice.between(0, dice.pick([800, 5_000])),
      tenant: dice.pick(tenants),
      ...this.#addressed(),
      ...dice.maybe(0.3, () => ({ shape: dice.pick(SHAPES) })),
      ...dice.maybe(0.15, () => ({ misfits: true as const })),
      keepMs: dice.pick([0, 300, 4_000, 60_000, 60_000]),
      ...dice.maybe(0.25, () => ({ times: dice.pick([2, 3, 6]) })),
      ...dice.maybe(0.25, () => ({ again: dice.pick([0, 100, 500, 5_000]) })),
      ...dice.maybe(0.4, () => ({ worker: dice.between(0, workers - 1) })),
    }));
  }

  /** To a key, or to somebody of whom it is known that it waits. */
  #addressed(): Pick<SignalAct, 'key' | 'waiting'> {
    const dice = this.#dice;
    return dice.chance(0.5) ? { key: dice.pick([...SHARED_KEYS, 'nobody']) } : { waiting: dice.between(0, 3) };
  }

  /** Those who answer, decline, write, and change the goal meanwhile. */
  acts(roots: readonly Root[], workers: number): Act[] {
    const dice = this.#dice;
    return dice.list(0, dice.pick([3, 8]), () => {
      const type = dice.pick([
        'ANSWER',
        'ANSWER',
        'ANSWER',
        'ANSWER',
        'REJECT',
        'USER_MESSAGE',
        'REDIRECT',
        'PAUSE',
        'RESUME',
      ] as const);
      const isAnswer = type === 'ANSWER' || type === 'REJECT' || type === 'RESUME';
      return {
        at: dice.between(0, 5_500),
        root: dice.pick(roots as [Root]).run,
        task: dice.pick([0, 0, 0, dice.between(0, 5)]),
        type,
        from: dice.pick(['program', 'owner', 'owner', 'admin', 'stranger']),
        ...(isAnswer ? { pause: dice.between(0, 2) } : {}),
        ...(type === 'ANSWER' ? { args: dice.pick(['fit', 'fit', 'fit', 'misfit'] as const) } : {}),
        ...dice.maybe(0.4, () => ({ worker: dice.between(0, workers - 1) })),
        ...dice.maybe(0.25, () => ({ again: dice.pick([0, 50, 400]) })),
        ...(isAnswer ? dice.maybe(0.2, () => ({ atRoot: true as const })) : {}),
      };
    });
  }
}
