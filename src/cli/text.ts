/** Text for people: nothing that a model, a tool or a file says may command the terminal it is shown on. */
import {
  branchesOf,
  type Decision,
  type InputArtifact,
  type Json,
  type Outcome,
  type Scope,
  type UsageTotals,
} from '#core';

// Control characters but tab and newline, and the marks that turn the direction of text around.
const COMMANDING = /(?![\t\n])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Text of several lines with every commanding character made visible. */
export function harmless(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(COMMANDING, visible);
}

/** Text on one line, at most `chars` long. */
export function shortLine(text: string, chars: number): string {
  // Cut before it is cleaned: the text may be very long.
  const start = text.slice(0, chars + 1).replace(/\s+/g, ' ');
  const clean = harmless(start.trim());
  return text.length > chars ? `${clean.slice(0, chars - 1).toWellFormed()}…` : clean;
}

export function fileText({ artifactRef, mime, sizeBytes, fileName }: InputArtifact): string {
  const named = fileName === undefined ? '' : ` ${shortLine(fileName, 100)}`;
  return `file ${artifactRef}${named} (${shortLine(mime, 60)}, ${grouped(sizeBytes)} bytes)`;
}

/** JSON on one line. Still JSON, but what terminals obey is escaped. */
export function terminalJson(value: unknown): string {
  return JSON.stringify(value).replace(COMMANDING, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function shortArgs(args: Json, chars: number = 80): string {
  return JSON.stringify(args) === '{}' ? '' : shortLine(terminalJson(args), chars);
}

/** A character as its picture: `␛` for escape. */
function visible(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\uFFFD';
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1440)} days`;
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(1)} KiB`;
  if (bytes < 1024 ** 3) return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}

/** A whole number with its thousands apart. What knows the languages of the world takes 30 ms to load, and most numbers are small. */
export function grouped(amount: number): string {
  return amount < 1000 ? String(amount) : amount.toLocaleString('en');
}

export function count(number: number, noun: string, plural: string = `${noun}s`): string {
  return `${grouped(number)} ${number === 1 ? noun : plural}`;
}

export function dollars(microUsd: number): string {
  return `$${(microUsd / 1_000_000).toFixed(microUsd % 10_000 === 0 ? 2 : 6)}`;
}

/** Quotes a word for a POSIX shell, for a command that is shown to be copied. */
export function shellWord(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Tokens in and out, with how many of them, and which share, were read from a cache, written to one, or thought, where somebody said so. */
export function tokenWords({
  inputTokens = 0,
  outputTokens = 0,
  cachedInputTokens = 0,
  cacheWriteInputTokens = 0,
  reasoningTokens = 0,
}: Partial<Readonly<UsageTotals>>): string {
  const share = Math.floor((cachedInputTokens / inputTokens) * 100);
  const cache = [
    ...(cachedInputTokens > 0 ? [`${grouped(cachedInputTokens)} cached, ${share} %`] : []),
    ...(cacheWriteInputTokens > 0 ? [`${grouped(cacheWriteInputTokens)} written to the cache`] : []),
  ];
  const cached = cache.length > 0 ? ` (${cache.join('; ')})` : '';
  const thought = reasoningTokens > 0 ? ` (${grouped(reasoningTokens)} reasoning)` : '';
  return `${grouped(inputTokens)} tokens in${cached}, ${grouped(outputTokens)} out${thought}`;
}

// A decision, and what came of it, in a few words.

const CHARS = 120;

/** A decision that did not pass may have any shape. */
export function decisionText(decision: Decision): string {
  switch (decision.kind) {
    case 'call_tool':
    case 'call_parallel':
      return callsText(branchesOf(decision));
    case 'spawn_task':
      return `starts a task: ${shortLine(String(decision.spec?.description), CHARS)}`;
    case 'await_task':
      return `waits for the task ${shortLine(String(decision.taskId), CHARS)}`;
    case 'request_pause':
      return words('asks', String(decision.reason), decision.payload);
    case 'finish':
      return words('finishes', String(decision.reason), decision.payload);
    default:
      return `${decision satisfies never}` && shortLine(terminalJson(decision), CHARS);
  }
}

function callsText(branches: unknown): string {
  if (!Array.isArray(branches)) return 'calls, which cannot be read';
  return branches
    .map(({ tool, args }: { tool?: unknown; args?: Json }) =>
      words(shortLine(String(tool), 60), shortArgs(args ?? null)),
    )
    .join(', ');
}

function words(...parts: readonly (Json | object | undefined)[]): string {
  return parts
    .filter((part) => part !== undefined && part !== '')
    .map((part) => shortLine(typeof part === 'string' ? part : terminalJson(part), CHARS))
    .join(' ');
}

/** What a call came to. */
export function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'value':
      return shortLine(terminalJson(outcome.value), CHARS);
    case 'verdict':
      return words(outcome.verdict, outcome.payload);
    case 'error':
    case 'unknown':
    case 'cancelled':
    case 'skipped':
      return shortLine(outcome.error.code, 60);
    default:
      return outcome satisfies never;
  }
}

/** Whose a run is, for those who operate several tenants; nothing in the tenant of the command itself. */
export function whoseText({ tenant, user }: Pick<Scope, 'tenant' | 'user'>): string {
  return tenant === 'local' ? '' : `  ${shortLine(`${tenant}/${user}`, 80)}`;
}
