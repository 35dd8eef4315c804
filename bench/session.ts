/**
 * Conversations without end: what the 10,000th turn costs beside the hundredth, in one run that converses and in a session of runs, and how long
 * another process takes to open one; what it takes to send a message to a session; and 1,000 sessions at once.
 */
import { join } from 'node:path';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Measured } from './measure.ts';
import { withScratch } from './scratch.ts';
import { CONVERSING, SESSION, takeTurn } from './session-conversations.ts';
import { growth, growthRow, TURNS } from './session-growth.ts';
import { ENTRIES, longRun, opening, openRow, resumeOnce, toolRuntime } from './session-opening.ts';
import { crowd, crowdRow, sendRow, sends } from './session-sends.ts';

export async function session(): Promise<Measured> {
  return withScratch(async (folder) => {
    const path = join(folder, 'chat.db');
    const inMemory = await growth(CONVERSING, memoryJournal());
    const durable = await growth(CONVERSING, sqliteJournal({ path, synchronous: 'normal' }));
    const runs = await growth(SESSION, memoryJournal());
    const runsPath = join(folder, 'session.db');
    const durableRuns = await growth(SESSION, sqliteJournal({ path: runsPath, synchronous: 'normal' }));
    const tools = join(folder, 'tools.db');
    const opened = await opening(tools, await longRun(tools), toolRuntime, resumeOnce);
    const chat = await opening(path, durable.id, CONVERSING.runtimeOn, (run) => takeTurn(run, TURNS + 1));
    const sent = await sends(folder);
    const crowds = await crowd(memoryJournal);
    let file = 0;
    const durableCrowds = await crowd(() => sqliteJournal({ path: join(folder, `crowd-${file++}.db`) }));
    return {
      keys: {
        turn_growth_10000: {
          memory: inMemory.growth,
          sqlite: durable.growth,
          session_memory: runs.growth,
          session_sqlite: durableRuns.growth,
        },
        turn_ms_100: {
          memory: inMemory.early,
          sqlite: durable.early,
          session_memory: runs.early,
          session_sqlite: durableRuns.early,
        },
        turn_ms_10000: {
          memory: inMemory.late,
          sqlite: durable.late,
          session_memory: runs.late,
          session_sqlite: durableRuns.late,
        },
        open_100k_entries_ms: opened.openMs,
        go_on_100k_entries_ms: opened.turnMs,
        fold_100k_entries_ms: opened.foldMs,
        open_chat_10000_ms: chat.openMs,
        go_on_chat_10000_ms: chat.turnMs,
        send_ms: {
          memory_idle: sent.memory.idle,
          memory_queued: sent.memory.queued,
          sqlite_idle: sent.sqlite.idle,
          sqlite_queued: sent.sqlite.queued,
          raw_commit: sent.raw,
        },
        sessions_1000: {
          memory_ms: crowds.ms,
          memory_ms_each: crowds.msEach,
          memory_over_runs: crowds.overRuns,
          sqlite_ms: durableCrowds.ms,
          sqlite_ms_each: durableCrowds.msEach,
          sqlite_over_runs: durableCrowds.overRuns,
        },
      },
      rows: [
        growthRow('a run that converses, in memory', inMemory),
        growthRow('a run that converses, on SQLite, synchronous = NORMAL', durable),
        growthRow('a session of runs, in memory', runs),
        growthRow('a session of runs, on SQLite, synchronous = NORMAL', durableRuns),
        openRow(`a run of ${ENTRIES.toLocaleString('en')} entries`, opened),
        openRow(`a conversation of ${TURNS.toLocaleString('en')} turns`, chat),
        sendRow('in memory', sent.memory),
        sendRow('on SQLite, durable', sent.sqlite, `; a raw commit takes ${sent.raw} ms`),
        crowdRow('in memory', crowds),
        crowdRow('on SQLite, durable', durableCrowds),
      ],
    };
  });
}
