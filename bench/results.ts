/** Rewrites one part of RESULTS.md: what stands between its two markers. */
import { readFileSync, writeFileSync } from 'node:fs';

const FILE = new URL('RESULTS.md', import.meta.url);

export function writeResults(part: 'bench' | 'peers', text: string): void {
  const begin = `<!-- ${part}: begin -->`;
  const end = `<!-- ${part}: end -->`;
  const page = readFileSync(FILE, 'utf8');
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`RESULTS.md has lost its markers ${begin} and ${end}.`);
  writeFileSync(FILE, `${page.slice(0, from + begin.length)}\n\n\`\`\`text\n${text}\n\`\`\`\n\n${page.slice(to)}`);
}
