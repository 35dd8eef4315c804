/** Pilotage with its SQLite journal, which is fully synchronous by default. */
import { sqliteJournal } from '../../src/journal/sqlite.ts';
import { ourPlanner, ourRuntime, runOnce } from '../ours.ts';
import { measureDurablePeer } from './durable-peer.mjs';

await measureDurablePeer('Pilotage, SQLite journal', undefined, (path, steps) => {
  const journal = sqliteJournal({ path });
  const runtime = ourRuntime(ourPlanner(steps), journal);
  return {
    run: () => runOnce(runtime, steps),
    async close() {
      await runtime.close();
      await journal.close();
    },
  };
});
