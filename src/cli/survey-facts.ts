/** What the steps of a survey have found out so far: a pure reading of the trajectory. */
import { branchesOf, defined, isJsonObject, type Json, type JsonObject, type Step } from '#core';

export interface FolderEntry {
  readonly path: string;
  readonly type: string;
  readonly sizeBytes: number;
  readonly note?: string;
}

/** An entry of `list_files`. Only files have a size. */
type Listed = Omit<FolderEntry, 'sizeBytes'> & { readonly sizeBytes?: number };

export interface Commit {
  readonly commit: string;
  readonly date: string;
  readonly author: string;
  readonly subject: string;
}

export interface Match {
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
