/** The report of a survey, in Markdown. A pure text of the facts. */
import { extname } from 'node:path/posix';
import { branchesOf, defined, isJsonObject, type Json, type JsonObject, type RunView, type Step } from '#core';
import { count, shortLine, size } from './text.ts';

// What the steps of a survey have found out so far: a pure reading of the trajectory.

interface FolderEntry {
  readonly path: string;
  readonly type: string;
  readonly sizeBytes: number;
  readonly note?: string;
}

/** An entry of `list_files`. Only files have a size. */
type Listed = Omit<FolderEntry, 'sizeBytes'> & { readonly sizeBytes?: number };

interface Commit {
  readonly commit: string;
  readonly date: string;
  readonly author: string;
  readonly subject: string;
}

interface Match {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** A part of a folder's listing: `after` is absent for the first. */
export interface Page {
  readonly path: string;
  readonly after?: string;
}

export interface SurveyFacts {
  /** Everything that was listed, by path. */
  readonly entries: ReadonlyMap<string, FolderEntry>;
  /** Pages that were asked for, as `pageKey`. */
  readonly asked: ReadonlySet<string>;
  /** Pages that a result says follow. */
  readonly following: readonly Page[];
  /** Text of the files that were read; `undefined` for one that could not be. */
  readonly texts: ReadonlyMap<string, string | undefined>;
  /** `undefined`: the history was not read, and one of the failures says why. */
  readonly isRepository: boolean | undefined;
  readonly commits: readonly Commit[];
  readonly matches: readonly Match[];
  readonly moreMatches: boolean;
  /** What could not be looked at, and why. */
  readonly failures: readonly string[];
}

/** The whole workspace, as the tools name it. */
export const ROOT = '.';

export function pageKey({ path, after = '' }: Page): string {
  return `${path}\0${after}`;
}

class Gathered implements SurveyFacts {
  readonly entries = new Map<string, FolderEntry>();
  readonly asked = new Set<string>();
  readonly following: Page[] = [];
  readonly texts = new Map<string, string | undefined>();
  readonly commits: Commit[] = [];
  readonly matches: Match[] = [];
  readonly failures: string[] = [];
  isRepository: boolean | undefined;
  moreMatches = false;

  add(tool: string, args: JsonObject, value: JsonObject | undefined): void {
    switch (tool) {
      case 'list_files':
        this.#addPage(args as unknown as Page, value);
        return;
      case 'read_file':
        this.texts.set(String(args['path']), typeof value?.['text'] === 'string' ? value['text'] : undefined);
        return;
      case 'git_log':
        this.isRepository = value === undefined ? undefined : value['repository'] === true;
        this.commits.push(...listOf<Commit>(value?.['commits']));
        return;
      case 'search_files':
        this.matches.push(...listOf<Match>(value?.['matches']));
        this.moreMatches = value?.['next'] !== undefined;
        return;
      default:
        return;
    }
  }

  #addPage({ path, after }: Page, value: JsonObject | undefined): void {
    this.asked.add(pageKey(after === undefined ? { path } : { path, after }));
    for (const { path, type, sizeBytes = 0, note } of listOf<Listed>(value?.['entries'])) {
      // The journal of this very run tells nothing of the folder.
      if (path === '.pilotage') continue;
      this.entries.set(path, { path, type, sizeBytes, ...defined({ note }) });
    }
    const next = value?.['next'];
    if (isJsonObject(next ?? null)) this.following.push({ path, after: String((next as JsonObject)['after']) });
  }
}

export function gatherFacts(steps: readonly Step[]): SurveyFacts {
  const facts = new Gathered();
  for (const { decision, calls } of steps) {
    for (const [index, { tool, args }] of branchesOf(decision).entries()) {
      const outcome = calls[index]?.outcome;
      const value = outcome?.kind === 'value' && isJsonObject(outcome.value) ? outcome.value : undefined;
      const asked = isJsonObject(args) ? args : {};
      facts.add(tool, asked, value);
      if (outcome !== undefined && 'error' in outcome) {
        const where = typeof asked['path'] === 'string' ? ` of ${asked['path']}` : '';
        facts.failures.push(`${tool}${where}: ${outcome.error.message}`);
      }
    }
  }
  return facts;
}

/** A list in a tool's own result; its entries have the shape that the tool documents. */
function listOf<T>(value: Json | undefined): readonly T[] {
  return Array.isArray(value) ? (value as unknown as readonly T[]) : [];
}

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

/** Text of others inside a line of Markdown: it cannot become a link, an element, emphasis or code. */
function inline(text: string): string {
  return shortLine(text, 160).replaceAll('`', "'").replace(/[<*[]/g, '\\$&');
}

/** A name, a command or a line of a file as code. */
function code(text: string): string {
  return `\`${shortLine(text, 120).replaceAll('`', "'")}\``;
}

// How a folder is built and tested, from the files that say so.

interface BuildFacts {
  readonly lines: readonly string[];
  /** A file that names dependencies is here. */
  readonly hasManifest: boolean;
  readonly hasLock: boolean;
  readonly hasChecks: boolean;
  readonly hasTests: boolean;
}

const MANIFESTS: Readonly<Record<string, string>> = {
  'package.json': 'Node.js',
  'deno.json': 'Deno',
  'deno.jsonc': 'Deno',
  'pyproject.toml': 'Python',
  'setup.cfg': 'Python',
  'requirements.txt': 'Python',
  'cargo.toml': 'Rust',
  'go.mod': 'Go',
  'pom.xml': 'Java (Maven)',
  'build.gradle': 'Java (Gradle)',
  'build.gradle.kts': 'Kotlin (Gradle)',
  gemfile: 'Ruby',
  'composer.json': 'PHP',
  'mix.exs': 'Elixir',
  'cmakelists.txt': 'C or C++ (CMake)',
};
const LOCK =
  /^(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|deno\.lock|poetry\.lock|uv\.lock|pipfile\.lock|cargo\.lock|go\.sum|gemfile\.lock|composer\.lock|mix\.lock|gradle\.lockfile)$/i;
const CHECKS =
  /^(\.github\/workflows\/.+|\.gitlab-ci\.ya?ml|\.circleci\/config\.ya?ml|azure-pipelines\.ya?ml|jenkinsfile|\.travis\.ya?ml|\.ci\/.+|\.buildkite\/.+|\.woodpecker.*)$/i;
const TESTS = /(^|\/)(tests?|specs?|__tests__)\/|[._-](test|spec)s?\.\w+$|(^|\/)test_[^/]+\.py$|_test\.\w+$/i;
const TOOLS = /^(makefile|justfile|dockerfile|(docker-)?compose\.ya?ml|tsconfig\.json|biome\.jsonc?)$/i;

function buildFacts({ entries, texts }: SurveyFacts): BuildFacts {
  const files = [...entries.values()].flatMap(({ path, type }) => (type === 'file' ? [path] : []));
  const manifests = files.filter((path) => Object.hasOwn(MANIFESTS, path.toLowerCase()));
  const locks = files.filter((path) => LOCK.test(path));
  const checks = files.filter((path) => CHECKS.test(path));
  const tests = files.filter((path) => TESTS.test(path));
  const tools = files.filter((path) => TOOLS.test(path));
  const lines = [
    ...manifests.map((path) => `- ${code(path)}: ${MANIFESTS[path.toLowerCase()]}`),
    ...packageLines(texts.get('package.json')),
    ...targetLines(texts),
    ...named('Fixed versions', locks),
    ...named('Tools', tools),
    ...named('Checks', checks),
    ...(tests.length > 0 ? [`- Tests: ${count(tests.length, 'file')}, such as ${code(tests[0] ?? '')}`] : []),
  ];
  return {
    lines: lines.length > 0 ? lines : ['Nothing here says how it is built or tested.'],
    hasManifest: manifests.length > 0,
    hasLock: locks.length > 0,
    hasChecks: checks.length > 0,
    hasTests: tests.length > 0,
  };
}

function named(title: string, paths: readonly string[]): string[] {
  return paths.length === 0 ? [] : [`- ${title}: ${paths.slice(0, 8).map(code).join(', ')}`];
}

function packageLines(text: string | undefined): string[] {
  const manifest = parse(text);
  if (!isJsonObject(manifest)) return [];
  const { name, description, scripts, dependencies, devDependencies } = manifest;
  const lines: string[] = [];
  if (typeof name === 'string') {
    const words = typeof description === 'string' ? `: ${inline(description)}` : '';
    lines.push(`- The package ${code(name)}${words}`);
  }
  lines.push(`- Dependencies: ${keysOf(dependencies).length}, and ${keysOf(devDependencies).length} for development`);
  if (isJsonObject(scripts ?? null)) {
    const known = Object.entries(scripts as Readonly<Record<string, Json>>).slice(0, 12);
    lines.push(...known.map(([script, command]) => `- ${code(`npm run ${script}`)} runs ${code(String(command))}`));
  }
  return lines;
}

/** The targets of a makefile that a person would call. */
function targetLines(texts: SurveyFacts['texts']): string[] {
  for (const [path, text = ''] of texts) {
    if (!/^(makefile|justfile)$/i.test(path)) continue;
    const targets = [...text.matchAll(/^([a-z][\w-]*)[^:=\n]{0,80}:(?!=)/gim)].map(([, target = '']) => code(target));
    if (targets.length > 0) return [`- Targets of ${code(path)}: ${targets.slice(0, 16).join(', ')}`];
  }
  return [];
}

function keysOf(value: Json | undefined): string[] {
  return isJsonObject(value ?? null) ? Object.keys(value as object) : [];
}

function parse(text: string | undefined): Json {
  try {
    return text === undefined ? null : (JSON.parse(text) as Json);
  } catch {
    // A broken manifest counts as an empty one.
    return null;
  }
}
