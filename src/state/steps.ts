/**
 * The closed steps of a long run. Its state has them as an array like any other; behind it they lie in blocks, which copies of the state
 * share, and a block that was stored is read when somebody looks at one of its steps. Short runs have a plain array.
 *
 * Invariant: only the last step can change (it is opened again, or its results are shortened), and it is never in a stored block.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { deepFreeze, type Step } from '#core';

/** How many steps a block has. */
const BLOCK = 256;
/** Up to so many steps, a copy is a plain array. */
const LONG = 4 * BLOCK;

/** At least one of the two is there. */
interface Block {
  steps?: readonly Step[];
  bytes?: Uint8Array;
}

class LongList {
  readonly blocks: Block[];
  readonly tail: Step[];

  constructor(blocks: Block[], tail: Step[]) {
    this.blocks = blocks;
    this.tail = tail;
  }

  get length(): number {
    return this.blocks.length * BLOCK + this.tail.length;
  }

  at(index: number): Step | undefined {
    const first = this.blocks.length * BLOCK;
    if (index >= first) return this.tail[index - first];
    const block = this.blocks[Math.floor(index / BLOCK)];
    return block && stepsOf(block)[index % BLOCK];
  }

  /** False for a place that is neither the last step nor the one behind it. */
  put(index: number, step: Step): boolean {
    const at = index - this.blocks.length * BLOCK;
    if (at < 0 || at > this.tail.length) return false;
    this.tail[at] = step;
    if (this.tail.length > 2 * BLOCK) this.blocks.push({ steps: this.tail.splice(0, BLOCK) });
    return true;
  }
}

/** The array of a long list: whatever is asked of it is answered from the blocks. */
class AsArray implements ProxyHandler<Step[]> {
  readonly #list: LongList;

  constructor(list: LongList) {
    this.#list = list;
  }

  get(target: Step[], key: string | symbol, receiver: unknown): unknown {
    if (key === 'length') return this.#list.length;
    const index = indexIn(key);
    return index === undefined ? Reflect.get(target, key, receiver) : this.#list.at(index);
  }

  set(_: Step[], key: string | symbol, value: Step | number): boolean {
    // A push says the length as well.
    if (typeof value === 'number') return key === 'length' && value === this.#list.length;
    const index = indexIn(key);
    return index !== undefined && this.#list.put(index, value);
  }

  has(target: Step[], key: string | symbol): boolean {
    const index = indexIn(key);
    return index === undefined ? Reflect.has(target, key) : index < this.#list.length;
  }

  ownKeys(): string[] {
    return [...Array.from({ length: this.#list.length }, (_, index) => String(index)), 'length'];
  }

  getOwnPropertyDescriptor(target: Step[], key: string | symbol): PropertyDescriptor | undefined {
    if (key === 'length') return { value: this.#list.length, writable: true, enumerable: false, configurable: false };
    const index = indexIn(key);
    if (index === undefined) return Reflect.getOwnPropertyDescriptor(target, key);
    if (index >= this.#list.length) return undefined;
    return { value: this.#list.at(index), writable: true, enumerable: true, configurable: true };
  }
}

const LISTS = new WeakMap<readonly Step[], LongList>();

function arrayOf(list: LongList): Step[] {
  const array = new Proxy<Step[]>([], new AsArray(list));
  LISTS.set(array, list);
  return array;
}

function indexIn(key: string | symbol): number | undefined {
  if (typeof key === 'symbol') return undefined;
  const first = key.charCodeAt(0);
  return first >= DIGIT_0 && first <= DIGIT_9 ? Number(key) : undefined;
}

const DIGIT_0 = 48;
const DIGIT_9 = 57;

/** The steps lie in blocks, some of which may have to be read. */
export function isLong(steps: readonly Step[]): boolean {
  return LISTS.has(steps);
}

/** An array of the same steps that grows by itself. It costs little also when there are very many. */
export function copySteps(steps: readonly Step[]): Step[] {
  const list = LISTS.get(steps);
  if (list !== undefined) return arrayOf(new LongList([...list.blocks], [...list.tail]));
  if (steps.length <= LONG) return steps.slice();
  const count = storableBlocks(steps);
  const blocks = Array.from({ length: count }, (_, at): Block => ({ steps: sliceOf(steps, at) }));
  return arrayOf(new LongList(blocks, steps.slice(count * BLOCK)));
}

/** The same steps, of which the last is another one. */
export function withLastStep(steps: readonly Step[], last: Step): Step[] {
  const copy = withoutLastStep(steps);
  copy.push(last);
  return copy;
}

export function withoutLastStep(steps: readonly Step[]): Step[] {
  const list = LISTS.get(steps);
  if (list === undefined) return steps.slice(0, -1);
  return arrayOf(new LongList([...list.blocks], list.tail.slice(0, -1)));
}

/** How many blocks have only steps that do not change any more. */
export function storableBlocks(steps: readonly Step[]): number {
  return Math.max(0, Math.floor((steps.length - 1) / BLOCK));
}

/** The steps that no storable block has. */
export function stepsBehindBlocks(steps: readonly Step[]): Step[] {
  const from = storableBlocks(steps) * BLOCK;
  return Array.from({ length: steps.length - from }, (_, index) => steps[from + index] as Step);
}

/** The storable blocks from number `from` on, as bytes. */
export function packBlocks(steps: readonly Step[], from: number): Uint8Array[] {
  const packed: Uint8Array[] = [];
  for (let at = from; at < storableBlocks(steps); at += 1) {
    packed.push(LISTS.get(steps)?.blocks[at]?.bytes ?? packJson(sliceOf(steps, at)));
  }
  return packed;
}

/** The steps of these blocks, which are not read yet, and the steps behind them. */
export function stepsIn(blocks: readonly Uint8Array[], behind: Step[]): Step[] {
  if (blocks.length === 0) return behind;
  const unread = blocks.map((bytes) => ({ bytes }));
  return arrayOf(new LongList(unread, behind));
}

function stepsOf(block: Block): readonly Step[] {
  block.steps ??= deepFreeze(unpackJson<Step[]>(block.bytes as Uint8Array));
  return block.steps;
}

function sliceOf(steps: readonly Step[], block: number): Step[] {
  return steps.slice(block * BLOCK, (block + 1) * BLOCK);
}

const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** What steps say is much alike: this takes a tenth of the room, and less time to read from a disk. */
export function packJson(value: unknown): Uint8Array {
  return zstdCompressSync(JSON.stringify(value), FAST);
}

export function unpackJson<T>(bytes: Uint8Array): T {
  return JSON.parse(zstdDecompressSync(bytes).toString()) as T;
}
