/** The lines of a chat, and a terminal on which they are typed while it is written to. */
import { clearLine, createInterface, cursorTo } from 'node:readline';
import type { Terminal } from './terminal.ts';

export interface ChatInput {
  /** Somebody types, and sees what is answered meanwhile. */
  readonly isTyped: boolean;
  readonly lines: AsyncIterable<string>;
  /** Where the chat is shown: what is being typed stays below it. */
  readonly terminal: Terminal;
  /** Ctrl-C, also as the terminal gives it while it is read. */
  onInterrupt(interrupt: () => void): void;
  close(): void;
}

export function chatInput(terminal: Terminal): ChatInput {
  const { stdin, stderr } = process;
  const isTyped = stdin.isTTY === true && stderr.isTTY === true;
  const reader = createInterface({ input: stdin, terminal: isTyped, ...(isTyped ? { output: stderr } : {}) });
  // Lines that come before somebody asks for them are kept from here on.
  const lines = reader[Symbol.asyncIterator]();
  const above = isTyped ? abovePrompt(terminal, () => reader.prompt(true)) : terminal;
  if (isTyped) reader.prompt();
  let interrupt = (): void => {};
  const onInterrupt = (): void => interrupt();
  process.on('SIGINT', onInterrupt);
  reader.on('SIGINT', onInterrupt);
  return {
    isTyped,
    lines,
    terminal: above,
    onInterrupt: (given) => {
      interrupt = given;
    },
    close: () => {
      process.off('SIGINT', onInterrupt);
      reader.close();
    },
  };
}

/** Writes in the place of the prompt, which comes again below as soon as a line is whole. */
function abovePrompt(terminal: Terminal, prompt: () => void): Terminal {
  let isShown = true;
  const clear = (): void => {
    if (!isShown) return;
    cursorTo(process.stderr, 0);
    clearLine(process.stderr, 1);
    isShown = false;
  };
  const show = (): void => {
    prompt();
    isShown = true;
  };
  return {
    isLive: terminal.isLive,
    write: (text) => {
      clear();
      terminal.write(text);
      if (text.endsWith('\n')) show();
    },
    note: (text, tone) => {
      clear();
      terminal.note(text, tone);
      show();
    },
  };
}
