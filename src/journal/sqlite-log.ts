/** Reads a write-ahead log without SQLite, where SQLite would have to write to do so. https://sqlite.org/fileformat2.html#walformat */

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;
/** Where the file says that it is in WAL mode, by two bytes of 2; 1 stands for a file without a log. */
const MODE_OFFSET = 18;

/** The database as a reader of the file and its log sees it: every commit that is whole in the log, and nothing after. */
export function withLog(file: Uint8Array, log: Buffer): Uint8Array {
  const { pages, pageBytes, size } = committed(log);
  const image = new Uint8Array(size === 0 ? file.length : size * pageBytes);
  image.set(file.subarray(0, image.length));
  for (const [number, page] of pages) {
    const at = (number - 1) * pageBytes;
    if (at < image.length) image.set(page, at);
  }
  image.fill(1, MODE_OFFSET, MODE_OFFSET + 2);
  return image;
}

interface Committed {
  /** By their numbers, from 1. */
  readonly pages: ReadonlyMap<number, Uint8Array>;
  readonly pageBytes: number;
  /** In pages. 0: the log has no commit. */
  readonly size: number;
}

function committed(log: Buffer): Committed {
  const pages = new Map<number, Uint8Array>();
  let size = 0;
  if (log.length < HEADER_BYTES) return { pages, pageBytes: 0, size };
  const magic = log.readUInt32BE(0);
  const pageBytes = log.readUInt32BE(8);
  const sum = new Checksum((magic & 1) === 1);
  sum.add(log.subarray(0, 24));
  if ((magic & ~1) >>> 0 !== MAGIC || !sum.is(log, 24)) return { pages, pageBytes, size };
  const salt = log.subarray(16, 24);
  let open = new Map<number, Uint8Array>();
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  for (let at = HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes) {
    const page = log.subarray(at + FRAME_HEADER_BYTES, at + frameBytes);
    sum.add(log.subarray(at, at + 8));
    sum.add(page);
    // What follows is left from before the log was begun anew, or was cut off while it was written.
    if (!log.subarray(at + 8, at + 16).equals(salt) || !sum.is(log, at + 16)) break;
    open.set(log.readUInt32BE(at), page);
    const sizeAfter = log.readUInt32BE(at + 4);
    if (sizeAfter === 0) continue;
    size = sizeAfter;
    for (const [number, written] of open) pages.set(number, written);
    open = new Map();
  }
  return { pages, pageBytes, size };
}

/** SQLite's own, over everything that was added. */
class Checksum {
  readonly #isBigEndian: boolean;
  #first = 0;
  #second = 0;

  constructor(isBigEndian: boolean) {
    this.#isBigEndian = isBigEndian;
  }

  add(bytes: Buffer): void {
    const read = (at: number): number => (this.#isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at));
    for (let at = 0; at + 8 <= bytes.length; at += 8) {
      this.#first = (this.#first + read(at) + this.#second) >>> 0;
      this.#second = (this.#second + read(at + 4) + this.#first) >>> 0;
    }
  }

  /** Stored at that place. */
  is(log: Buffer, at: number): boolean {
    return log.readUInt32BE(at) === this.#first && log.readUInt32BE(at + 4) === this.#second;
  }
}
