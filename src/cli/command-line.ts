/** From the words of a command line to the command that carries them out, and to the exit code. */
import { readFileSync } from 'node:fs';
import { describeThrown, knowKeysOf, PilotageError, Redaction, withTraceparent } from '#core';
import { HELP } from './help.ts';
import { type Command, type Parsed, parseCommandLine } from './options.ts';
import { codeOfError, EXIT, type Terminal, UsageError } from './terminal.ts';
import { harmless, shortLine } from './text.ts';

/**
 * What `pilotage` does with these arguments, in the folder and with the environment of this process.
 *
 * @returns the exit code. Errors are told on the terminal, and are not thrown.
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  // What is said to a run from here is written without a runtime.
  knowKeysOf(process.env);
  try {
    return await carryOut(parseCommandLine(args), terminal);
  } catch (error) {
    terminal.note(explain(error), 'bad');
    if (args.length === 0) terminal.note(`\n${HELP}`);
    else if (error instanceof UsageError) terminal.note('pilotage --help says more.');
    if (args.includes('--debug') && error instanceof Error) {
      terminal.note(harmless(new Redaction().all(error.stack ?? '')), 'quiet');
    }
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
  return commandOf(parsed, terminal);
}

/** Each command loads what it needs: those that only look, or say something, start fast. */
async function commandOf({ command, words, options }: Command, terminal: Terminal): Promise<number> {
  const [subject = '', text = '', more = ''] = words;
  switch (command) {
    case 'chat':
      return (await import('./chat-command.ts')).chatCommand(options, terminal);
    case 'sessions':
      return (await import('./sessions-command.ts')).sessionsCommand(
        { action: subject, name: text, title: more },
        options,
        terminal,
      );
    case 'schedules':
      return (await import('./schedules-command.ts')).schedulesCommand(
        { action: subject, id: text, query: more },
        options,
        terminal,
      );
    case 'run': {
      // What a build or another program has begun, by its environment.
      const { runCommand } = await import('./run-command.ts');
      return withTraceparent(process.env['TRACEPARENT'], () => runCommand(subject, options, terminal));
    }
    case 'work':
      return (await import('./work-command.ts')).workCommand(options, terminal);
    case 'serve':
      return (await import('./serve-command.ts')).serveCommand(options, terminal);
    case 'plan':
      return (await import('./plan-command.ts')).planCommand(subject, options, terminal);
    case 'resume':
      return (await import('./resume-command.ts')).resumeCommand(subject, options, terminal);
    case 'retry':
      return (await import('./retry-command.ts')).retryCommand(subject, options, terminal);
    case 'list':
      return (await import('./list-command.ts')).listCommand(options, terminal);
    case 'waiting':
      return (await import('./waiting-command.ts')).waitingCommand(options, terminal);
    case 'signal':
      return (await import('./signal-command.ts')).signalCommand(subject, text, options, terminal);
    case 'inspect':
      return (await import('./inspect-command.ts')).inspectCommand(subject, options, terminal);
    case 'events':
      return (await import('./events-command.ts')).eventsCommand(subject, options, terminal);
    case 'stream':
      return (await import('./stream-command.ts')).streamCommand(subject, text, options, terminal);
    case 'approve':
    case 'answer':
    case 'settle':
    case 'reject':
    case 'cancel':
    case 'send':
    case 'redirect':
    case 'pause': {
      const { controlCommand } = await import('./control-command.ts');
      return controlCommand({ command, run: subject, text }, options, terminal);
    }
    case 'fork':
      return (await import('./fork-command.ts')).forkCommand(subject, options, terminal);
    case 'repair':
      return (await import('./repair-command.ts')).repairCommand(subject, options, terminal);
    case 'memory':
      return (await import('./memory-command.ts')).memoryCommand(subject, text, options, terminal);
    case 'rules':
      return (await import('./rules-command.ts')).rulesCommand(subject, text, options, terminal);
    case 'erase':
      return (await import('./erase-command.ts')).eraseCommand(options, terminal);
    case 'prune':
      return (await import('./prune-command.ts')).pruneCommand(options, terminal);
    case 'migrate':
      return (await import('./migrate-command.ts')).migrateCommand(options, terminal);
    case 'replay':
      return (await import('./fork-command.ts')).replayCommand(subject, options, terminal);
    default:
      return command satisfies never;
  }
}

function explain(error: unknown): string {
  const text = `pilotage: ${shortLine(new Redaction().all(describeThrown(error)), 1000)}`;
  return PilotageError.is(error) ? `${text} (${error.code})` : text;
}

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
