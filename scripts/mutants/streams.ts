/** Faults in streams. */
import type { Mutant } from './mutant.ts';

export const STREAMS: readonly Mutant[] = [
  {
    name: 'store rows again that had landed without an answer',
    file: 'calls/call-streams.ts',
    find: 'if (tries > 1 && (await this.#haveLanded(rows, after))) return;',
    replace: 'if (tries > 1 && (await this.#haveLanded(rows, after)) && tries < 0) return;',
  },
  {
    name: 'hold rows to be stored that were refused',
    file: 'calls/call-streams.ts',
    find: 'return name !== undefined && (await this.#count()).get(name) === after.get(name);',
    replace: 'return name !== undefined && (await this.#count()).get(name) !== undefined;',
  },
  {
    name: 'end a call before its rows are stored',
    file: 'calls/call.ts',
    find: 'if (streaming === undefined) return concluded(settled, attempt, making, context);',
    replace: 'if (streaming === undefined || attempt > 0) return concluded(settled, attempt, making, context);',
  },
  {
    name: 'let rows of the streams of a run overtake each other',
    file: 'calls/call-streams.ts',
    find: 'const done = this.#before.then(() => this.#append(place, rows));',
    replace: 'const done = this.#append(place, rows);',
  },
  {
    name: 'let whoever has lost a run write to its streams',
    file: 'journal/memory-streams.ts',
    find: 'assertFence({ run, fence }, this.#access.fenceOf(run));',
    replace: 'assertFence({ run, fence }, fence);',
  },
  {
    name: 'read behind a whole page of rows, however many were there',
    file: 'runtime/read-stream.ts',
    find: 'next += rows.length;',
    replace: 'next += PAGE;',
  },
  {
    name: 'look only once for rows that come',
    file: 'runtime/read-stream.ts',
    find: 'if (isDirty) continue;',
    replace: 'if (isDirty || next > from) return;',
  },
  {
    name: 'look whether the run has ended when the rows were read',
    file: 'runtime/read-stream.ts',
    find: 'const { rows, closed } = await journal.streams.read(run, name, next, PAGE);',
    replace:
      'const rows = (await journal.streams.read(run, name, next, 1)).rows; const closed = rows.length === 0 && next > 1;',
  },
  {
    name: 'leave a stream closed to which somebody has written again',
    file: 'journal/memory-streams.ts',
    find: "stream.closed = 'closes' in row;",
    replace: "stream.closed ||= 'closes' in row;",
  },
  {
    name: 'write on when the call is over',
    file: 'calls/context.ts',
    find: "if (this.#isOver) return callIsOver(this.tool, 'and writes to no stream');",
    replace: '',
  },
  {
    name: 'keep what is written while other rows are stored for nobody',
    file: 'calls/call-streams.ts',
    find: 'while (this.#rows.length > 0 && this.#failure === undefined) {',
    replace: 'if (this.#rows.length > 0 && this.#failure === undefined) {',
  },
];
