/**
 * Where providers take files. Many protocols have none in the results of calls, and the packages for them write base64 into the text; which do
 * was read from the packages. A provider that is not named here gets files in a turn of the user, behind the results.
 */
import type { LanguageModelV4 } from '@ai-sdk/provider';

const PICTURES = /^image\//;
const PICTURES_AND_PDF = /^(?:image\/|application\/pdf$)/;

/** The name of a provider, as its package gives it, and the media types that results may have. */
const IN_RESULTS: readonly (readonly [provider: RegExp, types: RegExp])[] = [
  // Anthropic, also behind Vertex, Bedrock and Azure.
  [/(?:^|\.)anthropic\.messages$/, PICTURES_AND_PDF],
  [/^amazon-bedrock$/, PICTURES_AND_PDF],
  [/^xai\.responses$/, PICTURES],
  // OpenAI, Azure, and servers of Open Responses.
  [/\.responses$/, PICTURES_AND_PDF],
  [/\.interactions$/, PICTURES],
  [/^(?:deepseek\.chat|azure\.deepseek)$/, PICTURES],
];

/** Gemini has parts in results since its third generation. */
const GEMINI = /^google\.(?:generative-ai|vertex)/;
const GEMINI_3 = /gemini-(?:[3-9]|\d\d)/;

/** Whether the result of a call may have a file of this media type. */
export function takesInResults({ provider, modelId }: LanguageModelV4, mime: string): boolean {
  const type = mime.toLowerCase();
  const known = IN_RESULTS.find(([name]) => name.test(provider));
  if (known !== undefined) return known[1].test(type);
  return GEMINI.test(provider) && GEMINI_3.test(modelId) && PICTURES_AND_PDF.test(type);
}

/** Anthropic's models refuse a request over a picture whose base64 has more than 5 MB; the others take as much as fits a request. */
const SMALLER = /anthropic|bedrock/;

/** How many bytes a file of a result may have. A larger one would have every later request refused. */
export function mostFileBytes({ provider }: LanguageModelV4, mime: string): number {
  return SMALLER.test(provider) && PICTURES.test(mime.toLowerCase()) ? 3_750_000 : 15_000_000;
}

/** Whether the provider fetches a file of this media type from this URL. Not known where it would have to be waited for. */
export function takesUrl({ supportedUrls }: LanguageModelV4, mime: string, url: string): boolean {
  // A text that is no URL stands in no request.
  if (!URL.canParse(url) || typeof supportedUrls !== 'object' || supportedUrls === null || 'then' in supportedUrls)
    return false;
  const family = `${mime.slice(0, mime.indexOf('/'))}/*`;
  return Object.entries(supportedUrls).some(
    ([type, urls]) =>
      (type === mime || type === family || type === '*/*' || type === '*') && urls.some((known) => known.test(url)),
  );
}
