/** The report of a survey, in Markdown. A pure text of the facts. */

import { extname } from 'node:path/posix';
import type { RunView } from '#core';
import { code, inline } from './markdown.ts';
import { buildFacts } from './survey-build.ts';
import type { Commit, FolderEntry, Page, SurveyFacts } from './survey-facts.ts';
import { count, size } from './text.ts';

const SHOWN = 12;

export function surveyReport(run: RunView, facts: SurveyFacts, open: readonly Page[]): string {
  const files = [...facts.entries.values()].filter(({ type }) => type === 'file');
  const sections = [
    `# Survey\n\nAsked: ${inline(run.query)}\n\n${inShort(files, facts, open)}`,
    section('What is here', whatIsHere(facts, files)),
    section('How it is built and tested', buildFacts(facts).lines),
    section('Recent changes', changes(facts)),
    section('Sizes', sizes(files)),
    section('Open points in the text', openPoints(facts)),
    section('Risks', surveyRisks(facts, files)),
    section('Not looked at', notLookedAt(facts, open)),
  ];
  return `${sections.filter((text) => text !== '').join('\n\n')}\n`;
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `## ${title}\n\n${lines.join('\n')}`;
}

function inShort(files: readonly FolderEntry[], facts: SurveyFacts, open: readonly Page[]): string {
  if (facts.entries.size === 0) return 'The folder is empty.';
  const folders = [...facts.entries.values()].filter(({ type }) => type === 'folder').length;
  const least = open.length > 0 ? 'At least ' : '';
  const what = `${least}${count(files.length, 'file')} in ${count(folders, 'folder')}, ${size(total(files))}.`;
  const [kind] = byKind(files);
  const mostly = kind === undefined ? '' : ` Most of it is ${kind.name} (${size(kind.bytes)}).`;
  const [latest] = facts.commits;
  const changed = latest === undefined ? '' : ` Last change: ${day(latest)} by ${inline(latest.author)}.`;
  return what + mostly + changed;
}

function whatIsHere(facts: SurveyFacts, files: readonly FolderEntry[]): string[] {
  const top = [...facts.entries.values()].filter(({ path }) => !path.includes('/') && path !== '.');
  const folders = top.filter(({ type }) => type === 'folder');
  const lines = folders.map(({ path, note }) => {
    const inside = files.filter((file) => file.path.startsWith(`${path}/`));
    const content = note === undefined ? `${count(inside.length, 'file')}, ${size(total(inside))}` : inline(note);
    return `- ${code(`${path}/`)} ${content}`;
  });
  const plain = top.filter(({ type }) => type !== 'folder').map(({ path }) => code(path));
  if (plain.length > 0) lines.push(`- ${cut(plain, 24).join(', ')}`);
  return lines;
}

function changes({ isRepository, commits }: SurveyFacts): string[] {
  if (isRepository === undefined) return ['The git history was not read: see the end of this report.'];
  if (!isRepository) return ['There is no git history here.'];
  if (commits.length === 0) return ['The git repository has no commits yet.'];
  const authors = new Set(commits.map(({ author }) => author));
  const lines = commits.slice(0, SHOWN).map((commit) => {
    return `- ${day(commit)} ${code(commit.commit.slice(0, 9))} ${inline(commit.subject)} (${inline(commit.author)})`;
  });
  return [`Looked at: ${count(commits.length, 'commit')} by ${count(authors.size, 'person', 'people')}.`, '', ...lines];
}

interface Kind {
  readonly name: string;
  readonly files: number;
  readonly bytes: number;
}

function sizes(files: readonly FolderEntry[]): string[] {
  if (files.length === 0) return [];
  const rows = byKind(files)
    .slice(0, SHOWN)
    .map(({ name, files, bytes }) => `| ${name} | ${files} | ${size(bytes)} |`);
  const largest = [...files].sort((a, b) => b.sizeBytes - a.sizeBytes || (a.path < b.path ? -1 : 1)).slice(0, 5);
  return [
    '| kind | files | size |',
    '| --- | ---: | ---: |',
    ...rows,
    '',
    `Largest: ${largest.map(({ path, sizeBytes }) => `${code(path)} (${size(sizeBytes)})`).join(', ')}.`,
  ];
}

function byKind(files: readonly FolderEntry[]): Kind[] {
  const kinds = new Map<string, { files: number; bytes: number }>();
  for (const { path, sizeBytes } of files) {
    const name = extname(path).toLowerCase();
    const kind = kinds.get(name) ?? { files: 0, bytes: 0 };
    kinds.set(name, { files: kind.files + 1, bytes: kind.bytes + sizeBytes });
  }
  return [...kinds]
    .map(([name, kind]) => ({ name: name === '' ? 'without an ending' : code(name.replaceAll('|', '¦')), ...kind }))
    .sort((a, b) => b.bytes - a.bytes || b.files - a.files);
}

function openPoints({ matches, moreMatches }: SurveyFacts): string[] {
  if (matches.length === 0) return ['No line is marked as unfinished.'];
  const perFile = new Map<string, number>();
  for (const { path } of matches) perFile.set(path, (perFile.get(path) ?? 0) + 1);
  const least = moreMatches ? 'At least ' : '';
  const lines = matches
    .slice(0, SHOWN)
    .map(({ path, line, text }) => `- ${code(`${path}:${line}`)} ${code(text.trim())}`);
  return [`${least}${count(matches.length, 'marked line')} in ${count(perFile.size, 'file')}.`, '', ...lines];
}

function notLookedAt({ entries, failures }: SurveyFacts, open: readonly Page[]): string[] {
  const notes = [...entries.values()].filter(({ note }) => note !== undefined);
  const lines = cut(
    notes.map(({ path, note = '' }) => `- ${code(path)}: ${inline(note)}`),
    SHOWN,
  );
  if (open.length > 0) {
    const where = cut([...new Set(open.map(({ path }) => code(path)))], SHOWN);
    lines.push(`- The rest of ${where.join(', ')}: there is too much of it.`);
  }
  return [...lines, ...cut(failures, SHOWN).map((failure) => `- ${inline(failure)}`)];
}

function cut(words: readonly string[], most: number): string[] {
  return words.length <= most ? [...words] : [...words.slice(0, most), `and ${words.length - most} more`];
}

function total(files: readonly FolderEntry[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

function day({ date }: Commit): string {
  return date.slice(0, 10);
}

// What somebody who takes a folder over should know first. Each is a plain sign, not a judgement.

const SECRETS =
  /(^|\/)(\.env(\.(?!example|sample|template)\w+)?|id_(rsa|dsa|ecdsa|ed25519)|[^/]+\.(pem|p12|pfx|key)|\.npmrc|\.pypirc|\.netrc|credentials(\.json)?)$/i;
const LARGE_BYTES = 5 * 1024 * 1024;
const MANY_OPEN_POINTS = 50;

function surveyRisks(facts: SurveyFacts, files: readonly FolderEntry[]): string[] {
  const { entries, matches, isRepository } = facts;
  if (entries.size === 0) return [];
  const has = (pattern: RegExp): boolean => files.some(({ path }) => pattern.test(path));
  const build = buildFacts(facts);
  const secrets = files.filter(({ path }) => SECRETS.test(path));
  const large = files.filter(({ sizeBytes }) => sizeBytes > LARGE_BYTES);
  const odd = [...entries.values()].filter(({ path }) => path.includes('\uFFFD'));
  const links = [...entries.values()].filter(({ type }) => type === 'link');
  const risks: [boolean, string][] = [
    [secrets.length > 0, `Files that often hold secrets: ${some(secrets)}. Check that they are meant to be here.`],
    [isRepository === false, 'No git history: a mistake cannot be taken back.'],
    [!has(/^readme/i), 'No README: nothing says what this is for.'],
    [!has(/^(licen[cs]e|copying)/i), 'No licence file: others may not use it.'],
    [build.hasManifest && !build.hasTests, 'No tests were found.'],
    [build.hasManifest && !build.hasChecks, 'No automatic checks (CI) were found.'],
    [build.hasManifest && !build.hasLock, 'No file fixes the versions of the dependencies.'],
    [large.length > 0, `Large files: ${some(large)}.`],
    [matches.length >= MANY_OPEN_POINTS, `Many unfinished places: ${matches.length} or more.`],
    [links.length > 0, `${count(links.length, 'symbolic link')} that the tools do not follow: ${some(links)}.`],
    [odd.length > 0, `Names that are not UTF-8: ${some(odd)}. Many programs cannot open them.`],
  ];
  const found = risks.flatMap(([applies, text]) => (applies ? [`- ${text}`] : []));
  return found.length > 0 ? found : ['None of the usual ones.'];
}

function some(entries: readonly FolderEntry[]): string {
  const shown = entries.slice(0, 5).map(({ path, type, sizeBytes }) => {
    return type === 'file' && sizeBytes > LARGE_BYTES ? `${code(path)} (${size(sizeBytes)})` : code(path);
  });
  return entries.length > 5 ? `${shown.join(', ')} and ${entries.length - 5} more` : shown.join(', ');
}
