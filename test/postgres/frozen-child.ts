/** The process that is frozen: `node frozen-child.ts <folder> <url> <schema>` tells the run something, and says what became of it. */
import { PilotageError } from '#core';
import { postgresJournal } from '#journal/postgres';

const [, url = '', schema = ''] = process.argv.slice(2);
const journal = postgresJournal({ url }, { schema });
for (let tries = 1; tries <= 2; tries += 1) {
  const message = { id: 'c1', type: 'USER_MESSAGE', payload: { text: 'Go on.' } } as const;
  const told = await journal.signal('run', message).catch((error: unknown) => error);
  process.stdout.write(`${PilotageError.is(told) ? told.code : told}\n`);
}
await journal.close();
