/** Many cases, several at once; what seems to block is played again alone. */
import { setTimeout as sleep } from 'node:timers/promises';
import { planOf } from './cases.ts';
import { type Played, Player } from './player.ts';
import { type Block, pulse } from './pulse.ts';
import { OURS_NOT } from './tools.ts';

const BLOCK_MS = 100;
/** How often one that seemed to block is played alone. It blocks when it does so most of the time. */
const AGAIN = 3;
const LOOKS = 12;
const SETTLE_MS = 150;
/** Heap after a collection may differ by so much, whatever was played. */
const GROWN_BYTES = 8 << 20;

export interface SeasonOptions {
  readonly cases: number;
  readonly seed: number;
  readonly lanes: number;
  readonly collect: () => void;
  readonly tell: (line: string) => void;
  /** Only cases whose server or tool has this name. */
  readonly only?: string | undefined;
}

export interface Outcome {
  readonly cases: number;
  /** Runs that did not end well, errors that nobody caught and that are ours. */
  readonly problems: number;
  /** Cases that block the event loop for more than 100 ms. */
  readonly blocks: number;
  /** The longest that any of them blocked, alone. */
  readonly longestBlockMs: number;
  readonly endings: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  /** Errors that tools leave behind on purpose. */
  readonly uncaughtOfTools: number;
  /** After a collection, as the cases go on. */
  readonly heapBytes: readonly number[];
  /** 0, or by how much the heap grew from the second third of the cases to the last. */
  readonly grownBytes: number;
  readonly slowestMs: number;
}

export async function playCases(options: SeasonOptions): Promise<Outcome> {
  const season = new Season(options);
  return season.play();
}

/** The least of the last third over the least of the third before it: what is held for a moment is no growth. */
function grownBy(heap: readonly number[]): number {
  const third = Math.floor(heap.length / 3);
  return third === 0 ? 0 : Math.min(...heap.slice(-third)) - Math.min(...heap.slice(-2 * third, -third));
}

class Season {
  readonly #options: SeasonOptions;
  readonly #endings: Record<string, number> = {};
  readonly #suspects = new Map<number, Block>();
  readonly #live = new Set<number>();
  readonly #heap: number[] = [];
  #problems = 0;
  #uncaught = 0;
  #slowestMs = 0;

  constructor(options: SeasonOptions) {
    this.#options = options;
  }

  async play(): Promise<Outcome> {
    const player = await Player.open();
    const uncaught = (error: unknown): void => this.#uncaughtError(error);
    process.on('uncaughtException', uncaught);
    process.on('unhandledRejection', uncaught);
    try {
      await this.#all(player);
      const { blocks, longestBlockMs } = await this.#confirm(player);
      const grown = grownBy(this.#heap);
      return {
        cases: this.#options.cases,
        problems: this.#problems,
        blocks,
        longestBlockMs,
        endings: this.#endings,
        faults: player.faults,
        uncaughtOfTools: this.#uncaught,
        heapBytes: this.#heap,
        grownBytes: grown > GROWN_BYTES ? grown : 0,
        slowestMs: this.#slowestMs,
      };
    } finally {
      await player.close();
      // Tools may have left something behind that goes off now.
      await sleep(50);
      process.off('uncaughtException', uncaught);
      process.off('unhandledRejection', uncaught);
    }
  }

  async #all(player: Player): Promise<void> {
    const { cases, seed, lanes } = this.#options;
    const parts = Math.min(LOOKS, cases);
    let next = seed;
    const lane = async (until: number): Promise<void> => {
      for (let mine = next; mine < until; mine = next) {
        next += 1;
        if (this.#isWanted(mine)) this.#report(await this.#one(player, mine));
      }
    };
    const stop = pulse(BLOCK_MS, (block) => {
      for (const suspect of this.#live) this.#suspects.set(suspect, block);
    });
    for (let part = 1; part <= parts; part += 1) {
      const until = seed + Math.round((cases * part) / parts);
      await Promise.all(Array.from({ length: lanes }, () => lane(until)));
      this.#heap.push(await this.#heapNow());
    }
    stop();
  }

  /** What tools and connections have left behind goes first. */
  async #heapNow(): Promise<number> {
    for (let turn = 0; turn < 3; turn += 1) {
      await sleep(SETTLE_MS);
      this.#options.collect();
    }
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  }

  #isWanted(seed: number): boolean {
    const { only } = this.#options;
    const { server, tool, misbehaves } = planOf(seed);
    return only === undefined || (server === only && misbehaves > 0) || (tool === only && misbehaves === 0);
  }

  async #one(player: Player, seed: number): Promise<Played> {
    this.#live.add(seed);
    const played = await player.play(seed);
    this.#live.delete(seed);
    return played;
  }

  #report({ plan, ending, problem, ms }: Played): void {
    this.#endings[ending] = (this.#endings[ending] ?? 0) + 1;
    this.#slowestMs = Math.max(this.#slowestMs, ms);
    if (problem !== undefined) this.#problem(`${JSON.stringify(plan)}: ${problem}`);
  }

  #problem(line: string): void {
    this.#problems += 1;
    this.#options.tell(line);
  }

  #uncaughtError(error: unknown): void {
    if (error instanceof Error && error.message === OURS_NOT) this.#uncaught += 1;
    else this.#problem(`nobody caught ${error instanceof Error ? error.stack : String(typeof error)}`);
  }

  /** Several are played at once, and the work of all of them may come together: only what blocks alone is a block. */
  async #confirm(player: Player): Promise<{ readonly blocks: number; readonly longestBlockMs: number }> {
    let blocks = 0;
    let longestBlockMs = 0;
    for (const [suspect] of this.#suspects) {
      const times: number[] = [];
      for (let time = 1; time <= AGAIN; time += 1) {
        let longest = 0;
        const stop = pulse(BLOCK_MS / 2, ({ ms, cpuMs }) => {
          longest = Math.max(longest, Math.min(ms, cpuMs));
        });
        await player.play(suspect, time);
        await sleep(30);
        stop();
        times.push(longest);
        if (longest <= BLOCK_MS) break;
      }
      longestBlockMs = Math.max(longestBlockMs, Math.min(...times));
      if (Math.min(...times) <= BLOCK_MS) continue;
      blocks += 1;
      this.#options.tell(`${JSON.stringify(planOf(suspect))}: it blocks for ${Math.min(...times)} ms`);
    }
    return { blocks, longestBlockMs };
  }
}
