/** What a provider names as the sources of a reply: pages and documents, as parts of their own or as citations of a text. */
import type { LanguageModelV4Content, LanguageModelV4Source } from '@ai-sdk/provider';
import { defined, distinctSources, type Source } from '#core';

/** The most sources that are kept of one reply, and characters of what they are called. */
const MAX_SOURCES = 100;
const MAX_NAME_CHARS = 500;
/** Longer addresses are left out, since half of one leads somewhere else. */
const MAX_URL_CHARS = 4_000;

const NONE: readonly Source[] = Object.freeze([]);

export function sourcesIn(content: readonly LanguageModelV4Content[]): readonly Source[] {
  if (!content.some(namesSources)) return NONE;
  const named = content.flatMap((part) => {
    if (part.type === 'source') return [part];
    return part.type === 'text' ? (part.citations ?? []).map(({ source }) => source) : [];
  });
  return distinctSources(named.flatMap(sourceOf)).slice(0, MAX_SOURCES);
}

function namesSources(part: LanguageModelV4Content): boolean {
  return part.type === 'source' || (part.type === 'text' && part.citations !== undefined);
}

/** A provider of another version may name other things. */
function sourceOf(named: LanguageModelV4Source): readonly Source[] {
  if (named.sourceType === 'url') {
    const { url, title } = named;
    return typeof url !== 'string' || url.length > MAX_URL_CHARS
      ? NONE
      : [{ type: 'url', url, ...defined({ title: nameOf(title) }) }];
  }
  if (named.sourceType !== 'document') return NONE;
  const { title, mediaType = 'application/octet-stream', filename } = named;
  const name = nameOf(title) ?? 'Document';
  return [{ type: 'document', title: name, mediaType, ...defined({ filename: nameOf(filename) }) }];
}

function nameOf(text: string | undefined): string | undefined {
  return typeof text === 'string' && text !== '' ? text.slice(0, MAX_NAME_CHARS).toWellFormed() : undefined;
}
