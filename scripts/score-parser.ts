/**
 * Scores the parser on recorded model outputs: `node scripts/score-parser.ts <data folder> [files]`. The folder holds
 * `score.mjs`, which needs ajv, and the recordings; without names, all development files are scored. Nothing of it belongs
 * to this project. `node scripts/score-parser.ts --corpus` prints how many texts of our own corpus give a call, by
 * strictness: false calls of texts that make none, found calls of texts that make one.
 */
import { readdirSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type CallForm, type ParseTool, parseToolArgs, parseToolCalls } from '#parse';
import { corpus, type PartName, rateOf } from './parser-corpus/rates.ts';

/** One recording, as far as the parser may see it. */
interface Row {
  readonly shape: string;
  /** The tool of a native call. */
  readonly name?: string;
}

interface Call {
  readonly name: string;
  readonly args: unknown;
}

type Parse = (raw: string, tools: readonly ParseTool[], row: Row) => Call[] | null;

interface Scorer {
  loadSet(path: string): readonly Row[];
  scoreSet(rows: readonly Row[], parse: Parse, options: { by: string[] }): Promise<{ msPerRow: number }>;
  table(result: object): string;
}

const DEV_FILE = /\.dev\.jsonl\.gz$/;
const SCORED = /_outputs|native_args|text_calls/;

function parse(raw: string, tools: readonly ParseTool[], row: Row): Call[] | null {
  const { name } = row;
  if (name === undefined) return parseToolCalls(raw, tools).calls.map(({ tool, args }) => ({ name: tool, args }));
  const result = parseToolArgs(raw, tools.find((tool) => tool.name === name) ?? { name });
  return result === null ? null : [{ name, args: result.args }];
}

function devFiles(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => DEV_FILE.test(name) && SCORED.test(name)).sort();
}

function scoreCorpus(): void {
  const levels: readonly CallForm[] = ['exact', 'clear', 'loose'];
  console.log(
    `| texts that give a call | texts | ${levels.map((level) => `${level} %`).join(' | ')} |\n|---|---|---|---|---|`,
  );
  for (const name of Object.keys(corpus) as PartName[]) {
    const rates = levels.map((level) => rateOf(name, level));
    const shares = rates.map(({ calls, texts }) => ((100 * calls) / texts).toFixed(2));
    console.log(`| ${name} | ${rates[0]?.texts ?? 0} | ${shares.join(' | ')} |`);
  }
}

async function main(): Promise<void> {
  const [folder, ...names] = process.argv.slice(2);
  if (folder === '--corpus') return scoreCorpus();
  if (folder === undefined) throw new Error('Give the folder of the data: node scripts/score-parser.ts <folder>');
  // The scorer asks for ajv, which it does not have beside it: it gets ours.
  registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier, specifier === 'ajv' ? { ...context, parentURL: import.meta.url } : context),
  });
  const scorer = (await import(pathToFileURL(resolve(folder, 'score.mjs')).href)) as Scorer;
  for (const name of names.length > 0 ? names : devFiles(folder)) {
    const result = await scorer.scoreSet(scorer.loadSet(join(folder, name)), parse, { by: ['shape'] });
    console.log(`\n## ${name} (${result.msPerRow.toFixed(3)} ms a row)\n${scorer.table(result)}`);
  }
}

await main();
