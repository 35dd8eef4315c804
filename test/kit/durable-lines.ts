/** A file of lines that outlives the process that writes them. */
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';

/** Writes the line, and returns when it is on disk. */
export function appendDurably(path: string, line: string): void {
  const file = openSync(path, 'a');
  try {
    writeSync(file, `${line}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

export function readLines(path: string): unknown[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}
