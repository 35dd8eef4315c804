/** The lines of a chat, and a terminal on which they are typed while it is written to. */
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from 'node:readline';
import { Writable } from 'node:stream';
import type { Terminal, Tone } from './terminal.ts';

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
  const prompt = isTyped ? new Prompt(terminal) : undefined;
  const reader = createInterface({ input: stdin, terminal: isTyped, ...(prompt && { output: prompt.output }) });
  // Lines that come before somebody asks for them are kept from here on.
  const lines = reader[Symbol.asyncIterator]();
  prompt?.begin(reader);
  let interrupt = (): void => {};
  const onInterrupt = (): void => interrupt();
  process.on('SIGINT', onInterrupt);
  reader.on('SIGINT', onInterrupt);
  return {
    isTyped,
    lines,
    terminal: prompt ?? terminal,
    onInterrupt: (given) => {
      interrupt = given;
    },
    close: () => {
      process.off('SIGINT', onInterrupt);
      reader.close();
    },
  };
}

/**
 * The line that is typed, and the terminal above it: what is written takes the place of the line, which comes again below as soon as
 * what was written ends with a whole line. Until then what is typed is not shown: the reader would clear what was written to draw it.
 */
class Prompt implements Terminal {
  readonly isLive: boolean;
  /** Where the reader shows what is typed. */
  readonly output: Writable;
  readonly #above: Terminal;
  #reader: Interface | undefined;
  #isShown = true;

  constructor(above: Terminal) {
    const { stderr } = process;
    this.#above = above;
    this.isLive = above.isLive;
    this.output = new Writable({
      decodeStrings: false,
      write: (text: string, _, done) => {
        if (this.#isShown) stderr.write(text);
        done();
      },
    });
    Object.defineProperty(this.output, 'columns', { get: () => stderr.columns });
    stderr.on('resize', () => this.output.emit('resize'));
  }

  begin(reader: Interface): void {
    this.#reader = reader;
    // Nothing is typed any more when the input has ended, while there may be something left to say.
    reader.on('close', () => {
      this.#reader = undefined;
    });
    reader.prompt();
  }

  write(text: string): void {
    this.#clear();
    this.#above.write(text);
    if (text.endsWith('\n')) this.#show();
  }

  note(text: string, tone?: Tone): void {
    this.#clear();
    this.#above.note(text, tone);
    this.#show();
  }

  #clear(): void {
    if (!this.#isShown || this.#reader === undefined) return;
    moveCursor(process.stderr, 0, -this.#reader.getCursorPos().rows);
    cursorTo(process.stderr, 0);
    clearScreenDown(process.stderr);
    this.#isShown = false;
  }

  #show(): void {
    this.#isShown = true;
    if (this.#reader === undefined) return;
    // The reader begins as many rows further up as the cursor stands below the beginning of what is typed.
    process.stderr.write('\n'.repeat(this.#reader.getCursorPos().rows));
    this.#reader.prompt(true);
  }
}
