/** `pilotage chat` on a terminal: what stands on the screen, and how it is left. */
import { describe, expect, it } from 'vitest';
import { makeFolder } from './command.ts';

/** `tell …` speaks on one line until there is a file `go`; `work` waits for it in a call, whatever its signal says. */
const CONFIG = `
import { existsSync } from 'node:fs';
const gone = async () => { while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10)); };
export default {
  planner: {
    name: 'speaks',
    async *next({ query, trajectory: { count } }) {
      if (query === 'work' && count === 0) return { kind: 'call_tool', tool: 'work', args: {} };
      if (query.startsWith('tell')) {
        yield { type: 'text', text: 'It begins' };
        await gone();
        yield { type: 'text', text: ' and ends.' };
      }
      return { kind: 'finish', reason: 'goal', payload: 'done with ' + query };
    },
  },
  tools: [{ name: 'work', description: 'Works.', inputSchema: { type: 'object' },
    execute: () => { console.error('tool: entered'); return gone(); } }],
};
`;

function chat(columns: number, ...more: readonly string[]) {
  const folder = makeFolder();
  folder.write('pilotage.config.ts', CONFIG);
  const { child, done, untilOutput } = folder.startOnTerminal(['chat', ...more], columns);
  return { folder, done, untilOutput, type: (text: string) => void child.stdin?.write(text) };
}

/** What stands on a terminal of so many columns, also what was scrolled away. Knows what readline and our own notes write. */
function screenOf(output: string, columns: number): string[] {
  const rows: string[] = [''];
  let [row, column] = [0, 0];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what terminals obey
  for (const [piece, amount = '', command] of output.matchAll(/\u001b\[([\d;]*)([A-Za-z])|[\s\S]/g)) {
    if (command === 'A') row = Math.max(0, row - Number(amount || 1));
    else if (command === 'G') column = Number(amount || 1) - 1;
    else if (command === 'J') rows.splice(row, rows.length, (rows[row] ?? '').slice(0, column));
    else if (command !== undefined) continue;
    else if (piece === '\r') column = 0;
    else {
      if (piece === '\n' || column === columns) row += 1;
      if (piece !== '\n' && column === columns) column = 0;
      rows[row] ??= '';
      if (piece === '\n') continue;
      rows[row] = (rows[row] ?? '').slice(0, column).padEnd(column) + piece + (rows[row] ?? '').slice(column + 1);
      column += 1;
    }
  }
  return rows;
}

describe('pilotage chat on a terminal', () => {
  it('keeps all that it has said on the screen while somebody types a long line, and takes mistakes back', async () => {
    const { folder, done, untilOutput, type } = chat(30);
    await untilOutput(/> /);
    type('tell me\r');
    await untilOutput(/It begins/);
    const message = 'a message that is longer than the terminal is wide, by far!';
    type(`${message}??\u007f\u007f`);
    folder.write('go', '');
    await untilOutput(/finished: goal/);
    type('\r');
    await untilOutput(/done with a message/);
    type('\u0004');
    const { code, stdout } = await done;
    const screen = screenOf(stdout, 30).map((line) => line.trimEnd());
    expect(screen).toContain('It begins and ends.');
    expect(screen.filter((line) => line.endsWith('finished: goal'))).toHaveLength(2);
    expect(screen.join('')).toContain(`> ${message}`);
    expect(screen.join('')).toContain(`done with ${message}`);
    expect(code).toBe(0);
  });

  it('lets what is under way end when the input ends', async () => {
    const { folder, done, untilOutput, type } = chat(80);
    await untilOutput(/> /);
    type('work\r');
    await untilOutput(/tool: entered/);
    type('\u0004');
    await untilOutput(/The session keeps the turn under way/);
    folder.write('go', '');
    const { code } = await done;
    expect(code).toBe(0);
    const { stdout } = await folder.run([
      'inspect',
      (await folder.run(['list', '--json'])).stdout.match(/run_\w+/)?.[0] ?? '',
    ]);
    expect(stdout).toContain('✓ work');
  });

  it('is left by a second Ctrl-C, also when it comes at once', async () => {
    const { done, untilOutput, type } = chat(80, '--grace', '0');
    await untilOutput(/> /);
    type('tell me\r');
    await untilOutput(/It begins/);
    type('\u0003\u0003');
    const { code, stdout } = await done;
    expect(stdout).not.toContain('runtime_closed');
    expect(code).toBe(130);
  });

  it('takes what is pasted as one message, and as no command', async () => {
    const { done, untilOutput, type } = chat(80);
    await untilOutput(/\[\?2004h/);
    type('please: \u001b[200~one\r\u0003two\r\n\u001b[31mthree\u001b[201~ and mine\r');
    await untilOutput(/done with please: one\r?\ntwo\r?\n\[31mthree and mine/);
    type('\u001b[200~/quit\n/approve\n\u001b[201~');
    await untilOutput(/\/\/quit\u2424\/approve\u2424/);
    type('\r');
    await untilOutput(/done with \/quit\r?\n\/approve/);
    // What is typed before it says what it is.
    type('/title \u001b[200~Of bread\u001b[201~\r/turns\r');
    await untilOutput(/2 {2}> /);
    type('\u0004');
    const { code, stdout } = await done;
    expect(code).toBe(0);
    expect(stdout.match(/finished: goal/g)).toHaveLength(2);
    expect(stdout.lastIndexOf('\u001b[?2004l')).toBeGreaterThan(stdout.lastIndexOf('\u001b[?2004h'));
  });
});
