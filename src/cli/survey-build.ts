/** How a folder is built and tested, from the files that say so. */
import { isJsonObject, type Json } from '#core';
import { code, inline } from './markdown.ts';
import type { SurveyFacts } from './survey-facts.ts';
import { count } from './text.ts';

export interface BuildFacts {
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

export function buildFacts({ entries, texts }: SurveyFacts): BuildFacts {
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
