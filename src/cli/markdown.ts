import { shortLine } from './text.ts';

/** Text of others inside a line of Markdown: it cannot become a link, an element, emphasis or code. */
export function inline(text: string): string {
  return shortLine(text, 160).replaceAll('`', "'").replace(/[<*[]/g, '\\$&');
}

/** A name, a command or a line of a file as code. */
export function code(text: string): string {
  return `\`${shortLine(text, 120).replaceAll('`', "'")}\``;
}
