/** What docs/operating.md, docs/sessions.md and the README say is run, and the pages show what came out. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { builtFile, builtUrl } from '../kit/built.ts';
import { onSources } from '../kit/project.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BUILT = builtFile('src/cli/main.ts');

let folder: string;
beforeEach(() => {
  // Inside the project, so that configurations find its sources.
  folder = mkdtempSync(join(ROOT, '.pilotage-operating-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Stdout and stderr as a terminal shows them: in the order in which they came. @param main the file of the command. */
function shell(command: string, main: string): string {
  const path = join(folder, 'output.txt');
  const file = openSync(path, 'w');
  try {
    const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
    const base = { PATH, HOME: folder, NODE_COMPILE_CACHE };
    const program = command.replace(
      /npm run -s pilotage --|\bpilotage (?=[a-z]+ )/,
      `'${process.execPath}' '${main}' `,
    );
    spawnSync('sh', ['-c', program], { cwd: folder, env: base, stdio: ['ignore', file, file] });
  } finally {
    closeSync(file);
  }
  // What the shell says of a process that was killed is the shell's.
  return readFileSync(path, 'utf8').replace(/^.*Killed.*\n/gm, '');
}

async function newestRun(): Promise<string> {
  const journal = sqliteJournal({ path: join(folder, '.pilotage/pilotage.db') });
  const newest = (await journal.list({})).find(({ parent }) => parent === undefined);
  await journal.close();
  return newest?.identity.run ?? '';
}

/** The names that the page has for what is different each time. */
class Names {
  readonly #ids = new Map<string, string>();

  /** Makes `<run>` in a command the run that was started last. */
  resolve(command: string): string {
    return command.replaceAll(/<(?:run|fork|token)>/g, (name) => this.#ids.get(name) ?? name);
  }

  async shown(command: string, output: string): Promise<string> {
    const name = /pilotage (?:-- )?(run|plan|fork) (?:--session \S+ )?["<]/.exec(command)?.[1];
    const isStored = name !== undefined && !command.includes('--dry-run');
    if (isStored) this.#ids.set(name === 'fork' ? '<fork>' : '<run>', await newestRun());
    const token = /pause_[0-9a-f]{32}/.exec(output)?.[0];
    if (token !== undefined) this.#ids.set('<token>', token);
    let text = output.replaceAll('npm run -s pilotage --', 'pilotage');
    for (const [each, id] of this.#ids) text = text.replaceAll(id, each);
    const { username } = userInfo();
    return text
      .replace(`for      ${username} (`, 'for      ana (')
      .replaceAll(`local/${username}/`, 'local/ana/')
      .replaceAll(`  ${username.padEnd(10)}  `, `  ${'ana'.padEnd(10)}  `)
      .trimEnd();
  }
}

/** Without times, which are different each time. */
function steady(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'DATE')
    .replaceAll(/ *\+\d+\.\d{3}/g, ' +TIME')
    .replaceAll(/\d+(\.\d+)? (ms|s|min)\b( \d+ s)?/g, 'TIME')
    .replaceAll(/(TIME ago) +/g, '$1 ');
}

/** A console block with the output of each of its commands: as it stands when it is the same but for the times. */
async function played(block: string, names: Names): Promise<string> {
  const lines: string[] = [];
  for (const part of block.split(/^(?=\$ )/m).filter((each) => each !== '')) {
    const [line = '', ...rest] = part.trimEnd().split('\n');
    const command = line.slice(2);
    const output = await names.shown(command, shell(names.resolve(command), BUILT));
    const before = rest.join('\n');
    const after = steady(before) === steady(output) ? before : output;
    lines.push(line, ...(after === '' ? [] : [after]));
  }
  return `${lines.join('\n')}\n`;
}

/** The example with what it imports taken from the build. */
function refundConfig(): string {
  const code = readFileSync(join(ROOT, 'examples/refund.config.ts'), 'utf8');
  return code.replace(/(?<=from ')\.\.\/(src\/[^']+)(?=')/g, (_, source) => builtUrl(source));
}

/** What the page asks for between its commands. */
const PIECE =
  /(?<head>```console\n)(?<block>[\s\S]*?)(?<tail>```)|<!-- file: (?<file>\S+) -->\n```ts\n(?<code>[\s\S]*?)```|<!-- replace: (?<old>.*) => (?<changed>.*) -->/g;

describe.each([
  ['docs/operating.md', 9],
  ['docs/sessions.md', 3],
])('%s', (path, leastBlocks) => {
  it('shows what its commands print', async () => {
    const doc = join(ROOT, path);
    const names = new Names();
    const config = join(folder, 'pilotage.config.ts');
    writeFileSync(config, refundConfig());
    const page = readFileSync(doc, 'utf8');
    let blocks = 0;
    let fresh = '';
    let end = 0;
    for (const { 0: all, index, groups = {} } of page.matchAll(PIECE)) {
      const { head = '', block, tail = '', file, code = '', old, changed = '' } = groups;
      fresh += page.slice(end, index);
      end = index + all.length;
      fresh += block === undefined ? all : `${head}${await played(block, names)}${tail}`;
      if (block !== undefined) blocks += 1;
      if (file !== undefined) writeFileSync(join(folder, file), onSources(code, builtUrl));
      if (old === undefined) continue;
      const text = readFileSync(config, 'utf8');
      expect(text).toContain(old);
      writeFileSync(config, text.replace(old, changed));
    }
    fresh += page.slice(end);
    expect(blocks).toBeGreaterThanOrEqual(leastBlocks);
    // Run vitest with -u to have the output written anew.
    await expect(fresh).toMatchFileSnapshot(doc);
    // Each command is a process, and some of them take a second by themselves.
  }, 400_000);
});

describe('the example of the README', () => {
  it('is killed, approved with other arguments by another process, and finished by a third: paid once', async () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const section = readme.split(/^## /m).find((text) => text.startsWith('Operate a run\n')) ?? '';
    const commands = /```sh\n([\s\S]*?)```/.exec(section)?.[1]?.trim().split('\n') ?? [];
    expect(commands.length).toBeLessThanOrEqual(5);
    symlinkSync(join(ROOT, 'examples'), join(folder, 'examples'));
    const names = new Names();
    const outputs: string[] = [];
    // From the sources, as in a clone of the project.
    const main = join(ROOT, 'src/cli/main.ts');
    for (const command of commands) outputs.push(await names.shown(command, shell(names.resolve(command), main)));
    const [started = '', approved, resumed, inspected] = outputs;
    expect(started).toMatch(/‖ paused: approval_required {2}refund {"order":"A-17","amount":120}[^\n]*$/);
    expect(approved).toBe('Stored; nobody drives the run now. Go on with: pilotage resume <run>');
    expect(resumed).toContain('Paid back: {"order":"A-17","paid_back":90}');
    expect(inspected).toContain('✓ refund  {"order":"A-17","amount":90}');
    expect(readFileSync(join(folder, '.pilotage/refunds.txt'), 'utf8')).toBe('A-17 90\n');
  });
});
