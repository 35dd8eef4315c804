#!/usr/bin/env node
/** The command `pilotage`: a process around `runCommandLine`. */
import { runCommandLine } from './command-line.ts';
import { EXIT, processTerminal } from './terminal.ts';

for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of the output has gone; a run that was under way can be resumed.
    if (error.code === 'EPIPE') process.exit(EXIT.brokenPipe);
    throw error;
  });
const code = await runCommandLine(process.argv.slice(2), processTerminal());
// What is written must be out before the process ends; idle connections to a model's server must not keep it.
await new Promise((resolve) => process.stdout.write('', resolve));
process.exit(code);
