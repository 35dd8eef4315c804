#!/usr/bin/env node
/** The command `pilotage`. */
import { readFileSync } from 'node:fs';
import { describeThrown, PilotageError } from '../core/errors.ts';
import { codeOfError, EXIT, UsageError } from './exit-code.ts';
import { inspectCommand } from './inspect-command.ts';
import { listCommand } from './list-command.ts';
import { HELP, type Parsed, parseCommandLine } from './options.ts';
import { resumeCommand } from './resume-command.ts';
import { runCommand } from './run-command.ts';
import { processTerminal, type Terminal } from './terminal.ts';
import { harmless, oneLine } from './text.ts';

async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await carryOut(parseCommandLine(args), terminal);
  } catch (error) {
    terminal.note(explain(error), 'bad');
    if (args.length === 0) terminal.note(`\n${HELP}`);
    else if (error instanceof UsageError) terminal.note('pilotage --help says more.');
    if (args.includes('--debug') && error instanceof Error) terminal.note(harmless(error.stack ?? ''), 'quiet');
    return codeOfError(error);
  }
}

async function carryOut(parsed: Parsed, terminal: Terminal): Promise<number> {
  if (parsed.kind === 'help') {
    terminal.write(parsed.text);
    return EXIT.goal;
  }
  if (parsed.kind === 'version') {
    terminal.write(`${version()}\n`);
    return EXIT.goal;
  }
  const { command, subject, options } = parsed;
  switch (command) {
    case 'run':
      return runCommand(subject, options, terminal);
    case 'resume':
      return resumeCommand(subject, options, terminal);
    case 'list':
      return listCommand(options, terminal);
    case 'inspect':
      return inspectCommand(subject, options, terminal);
    default:
      return command satisfies never;
  }
}

function explain(error: unknown): string {
  const text = `pilotage: ${oneLine(describeThrown(error), 1000)}`;
  return PilotageError.is(error) ? `${text} (${error.code})` : text;
}

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read the output has gone; a run that was under way can be resumed.
  if (error.code === 'EPIPE') process.exit(EXIT.brokenPipe);
  throw error;
});
const code = await main(process.argv.slice(2), processTerminal());
// What is written must be out before the process ends; idle connections to a model's server must not keep it.
await new Promise((resolve) => process.stdout.write('', resolve));
process.exit(code);
