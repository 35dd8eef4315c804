/**
 * The survey: a planner without a model. It lists the folder, reads what says how it is built, looks at the history and
 * at open points, and writes a report. All that it knows it reads from the trajectory, so it goes on after any crash.
 */
import { type Branch, type Decision, defined, type Planner, type RunView } from '#core';
import { gatherFacts, type Page, pageKey, ROOT, type SurveyFacts, surveyReport } from './survey-report.ts';

/** Listings of a huge tree end here; the report says so. */
const MAX_ROUNDS = 8;
const LISTS_A_ROUND = 24;
const MAX_READS = 16;
const DEPTH = 32;
/** Words that mark an unfinished place, in the spelling that people use in comments. */
const OPEN_POINTS = '\\b(TODO|FIXME|HACK|XXX)\\b';

const WORTH_READING =
  /^(readme(\.\w+)?|package\.json|pyproject\.toml|setup\.cfg|requirements\.txt|cargo\.toml|go\.mod|makefile|justfile|cmakelists\.txt|pom\.xml|build\.gradle(\.kts)?|gemfile|composer\.json|dockerfile|deno\.jsonc?|mix\.exs)$/i;

export const survey: Planner = { name: 'survey', next: (run: RunView): Decision => decide(run) };

function decide(run: RunView): Decision {
  const { steps } = run.trajectory;
  if (steps.length === 0) {
    return parallel([
      { tool: 'list_files', args: { path: ROOT, depth: 1 } },
      { tool: 'git_log', args: { limit: 20 } },
      { tool: 'search_files', args: { pattern: OPEN_POINTS, regex: true } },
    ]);
  }
  const facts = gatherFacts(steps);
  const open = openPages(facts);
  const reads = filesToRead(facts);
  const isLast = steps.length >= MAX_ROUNDS || run.budget.stepsLeft <= 1;
  if (isLast || open.length + reads.length === 0) {
    return { kind: 'finish', reason: 'goal', payload: surveyReport(run, facts, open) };
  }
  return parallel([
    ...reads.map((path) => ({ tool: 'read_file', args: { path } })),
    ...open.slice(0, LISTS_A_ROUND).map(({ path, after }) => ({
      tool: 'list_files',
      args: { path, depth: path === ROOT ? 1 : DEPTH, ...defined({ after }) },
    })),
  ]);
}

function parallel(branches: readonly Branch[]): Decision {
  return { kind: 'call_parallel', branches, onInvalid: 'per_branch' };
}

/** Folders at the top that nobody listed yet, and pages that follow ones that were. */
function openPages({ entries, following, asked }: SurveyFacts): Page[] {
  const folders = [...entries.values()].filter(({ path, type, note }) => {
    return type === 'folder' && note === undefined && path !== ROOT && !path.includes('/');
  });
  return [...following, ...folders.map(({ path }) => ({ path }))].filter((page) => !asked.has(pageKey(page)));
}

function filesToRead({ entries, texts }: SurveyFacts): string[] {
  const worth = [...entries.values()].filter(({ path, type }) => type === 'file' && WORTH_READING.test(path));
  return worth
    .map(({ path }) => path)
    .slice(0, MAX_READS)
    .filter((path) => !texts.has(path));
}
