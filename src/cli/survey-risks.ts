/** What somebody who takes a folder over should know first. Each is a plain sign, not a judgement. */

import { code } from './markdown.ts';
import { buildFacts } from './survey-build.ts';
import type { FolderEntry, SurveyFacts } from './survey-facts.ts';
import { count, size } from './text.ts';

const SECRETS =
  /(^|\/)(\.env(\.(?!example|sample|template)\w+)?|id_(rsa|dsa|ecdsa|ed25519)|[^/]+\.(pem|p12|pfx|key)|\.npmrc|\.pypirc|\.netrc|credentials(\.json)?)$/i;
const LARGE_BYTES = 5 * 1024 * 1024;
const MANY_OPEN_POINTS = 50;

export function surveyRisks(facts: SurveyFacts, files: readonly FolderEntry[]): string[] {
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
