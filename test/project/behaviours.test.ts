import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rows = [
  ...readFileSync(join(root, 'docs/behaviours.md'), 'utf8').matchAll(/^\| ([A-Z]{2}-\d\d) \| (.*) \|$/gm),
].map(([, id = '', text = '']) => ({ id, text }));

/** The cases of each group that this version answers for. */
const GROUPS = {
  PC: 30,
  DV: 23,
  ER: 9,
  ID: 8,
  RL: 33,
  PX: 24,
  TL: 16,
  BG: 10,
  TJ: 18,
  CR: 8,
  CP: 19,
  RP: 24,
  RA: 41,
  DT: 14,
  RR: 8,
  MM: 22,
  MS: 11,
  EV: 15,
  RG: 20,
  TK: 45,
  SP: 48,
  DS: 19,
  AG: 47,
  RT: 35,
};

/** The cases that a text names; `DV-01..03`, `DV-01, 05` and `DV-01, ER-02` are lists. */
function casesIn(text: string): Set<string> {
  const found = new Set<string>();
  const lists = /\b([A-Z]{2})-(\d\d)\b((?:\s*(?:,|and|\/|\.\.|–|to)\s*(?:[A-Z]{2}-)?\d\d\b)*)/g;
  for (const [, first = '', number = '', rest = ''] of text.matchAll(lists)) {
    let last = Number(number);
    const add = (group: string, value: number) => found.add(`${group}-${String(value).padStart(2, '0')}`);
    add(first, last);
    for (const [, joint = '', group, next = ''] of rest.matchAll(/(,|and|\/|\.\.|–|to)\s*(?:([A-Z]{2})-)?(\d\d)/g)) {
      const from = joint === '..' || joint === '–' || joint === 'to' ? last + 1 : Number(next);
      for (let value = from; value <= Number(next); value += 1) add(group ?? first, value);
      last = Number(next);
    }
  }
  return found;
}

describe('docs/behaviours.md', () => {
  it.each(Object.entries(GROUPS))('answers for every case of %s', (group, count) => {
    const ids = rows.filter(({ id }) => id.startsWith(group)).map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: count }, (_, index) => `${group}-${String(index + 1).padStart(2, '0')}`));
  });

  it('names tests that name the case, or a reason', () => {
    const wrong = rows.flatMap(({ id, text }) => {
      if (text.startsWith('not held: ')) return text.length > 20 ? [] : [`${id} has no reason`];
      const files = [...text.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file);
      if (files.length === 0) return [`${id} names no test`];
      return files
        .filter((file) => !casesIn(readFileSync(join(root, file), 'utf8')).has(id))
        .map((file) => `${id} is not named in ${file}`);
    });
    expect(wrong).toEqual([]);
  });
});
