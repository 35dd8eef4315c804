/** The lines of a chat, and a terminal on which they are typed while it is written to. */
import {
  clearScreenDown,
  createInterface,
  cursorTo,
  emitKeypressEvents,
  type Interface,
  type Key,
  moveCursor,
} from 'node:readline';
import { Readable, Writable } from 'node:stream';
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
  const keys = isTyped ? new Keys(stdin) : undefined;
  const reader = createInterface({
    input: keys ?? stdin,
    terminal: isTyped,
    ...(prompt && { output: prompt.output }),
  });
  keys?.begin(reader);
  // Lines that come before somebody asks for them are kept from here on.
  const lines = reader[Symbol.asyncIterator]();
  prompt?.begin(reader);
  let interrupt = (): void => {};
  const onInterrupt = (): void => interrupt();
  process.on('SIGINT', onInterrupt);
  reader.on('SIGINT', onInterrupt);
  return {
    isTyped,
    lines: keys === undefined ? lines : withPastedLines(lines),
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

/** An end of a line in what was pasted, as long as it stands in the line that is typed. */
const LINE_END = '\u2424';

/** Lines as they were typed, with the ends of lines that were pasted into them. */
async function* withPastedLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield line.replaceAll(LINE_END, '\n');
}

/**
 * The keys of a terminal. What is pasted between them (bracketed paste: https://invisible-island.net/xterm/ctlseqs, mode 2004) is put into
 * the line that is typed, whole: it neither ends the line nor begins a command. A terminal without that mode gives it as keys.
 */
class Keys extends Readable {
  readonly #stdin: NodeJS.ReadStream;

  constructor(stdin: NodeJS.ReadStream) {
    super({ read: () => {} });
    this.#stdin = stdin;
  }

  get isRaw(): boolean {
    return this.#stdin.isRaw;
  }

  /** The reader asks for it while it reads, and not while the process is stopped (Ctrl-Z). */
  setRawMode(isRaw: boolean): this {
    this.#stdin.setRawMode(isRaw);
    this.#setPasteMode(isRaw);
    return this;
  }

  begin(reader: Interface): void {
    const stdin = this.#stdin;
    let pasted: string | undefined;
    const onKey = (text: string | undefined, key: Key): void => {
      if (key.name === 'paste-start') pasted = '';
      else if (key.name === 'paste-end') {
        reader.write(asTyped(pasted ?? '', reader.line.slice(0, reader.cursor)));
        pasted = undefined;
      } else if (pasted === undefined) this.emit('keypress', text, key);
      else pasted += key.sequence ?? '';
    };
    const onEnd = (): void => reader.close();
    const onExit = (): void => this.#setPasteMode(false);
    emitKeypressEvents(stdin);
    stdin.on('keypress', onKey).on('end', onEnd).resume();
    process.on('exit', onExit);
    reader.once('close', () => {
      stdin.off('keypress', onKey).off('end', onEnd).pause();
      process.off('exit', onExit);
    });
  }

  #setPasteMode(isOn: boolean): void {
    process.stderr.write(`\u001b[?2004${isOn ? 'h' : 'l'}`);
  }
}

/** The line that is typed has this before it. What commands the terminal is left out, and a slash that would begin a command is doubled. */
function asTyped(pasted: string, before: string): string {
  const text = pasted.replace(/\r\n?|[\u2028\u2029]/g, '\n').replace(/(?![\t\n])\p{Cc}/gu, '');
  const said = before.trim() === '' ? text.replace(/^\s*\//, '$&/') : text;
  return said.replaceAll('\n', LINE_END);
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
