/** A run that is advanced in slices by processes that end by themselves. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { builtFile } from '../kit/built.ts';
import { temporaryFile } from '../kit/files.ts';
import { bear } from '../kit/lives.ts';

/** As `slice-child.ts` has them. */
const STEPS = 20;

describe('a run that is advanced in slices', () => {
  it('is carried out by requests that each end with their process, which nothing holds', async () => {
    const path = temporaryFile();
    const program = builtFile('test/runtime/slice-child.ts');
    const said: string[] = [];
    while (said.at(-1) !== 'finished' && said.length < 60) {
      const born = bear({ program, folder: path, args: [] }, (line) => said.push(line));
      // It ends by itself, although it closes nothing.
      expect(await born.end).toBe(false);
    }
    expect(new Set(said)).toEqual(new Set(['pending', 'waiting', 'finished']));
    expect(readFileSync(`${path}-effects`, 'utf8')).toBe(Array.from({ length: STEPS }, (_, n) => `${n}\n`).join(''));
  });
});
