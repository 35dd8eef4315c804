/** Many texts of bytes as one parameter of a statement: they need no escapes then, and are sent once. */
import type { SqlValue } from './database.ts';

/** All bytes, and where each of them begins and how long it is, in the order in which they are given. */
export function piecesOf(
  parts: readonly Uint8Array[],
): readonly [bytes: Uint8Array, starts: SqlValue, sizes: SqlValue] {
  const sizes = parts.map(({ byteLength }) => byteLength);
  const starts: number[] = [];
  // SQL counts from 1.
  let next = 1;
  for (const size of sizes) {
    starts.push(next);
    next += size;
  }
  return [Buffer.concat(parts), starts, sizes];
}
