/** The numbered examples run as they stand, and `docs/planners.md` shows what they are and what they print. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { projectDir } from './scratch.ts';

const examplesDir = join(projectDir, 'examples');
const examples = readdirSync(examplesDir).filter((name) => /^\d\d-.*\.ts$/.test(name));
const doc = readFileSync(join(projectDir, 'docs/planners.md'), 'utf8');

// They are to leave nothing behind where they are run.
const folder = mkdtempSync(join(tmpdir(), 'pilotage-examples-'));
afterAll(() => rmSync(folder, { recursive: true }));

const printed = new Map<string, Promise<string>>();

/** What the example prints. Each is run once. @throws when it ends with another code than 0. */
function outputOf(name: string): Promise<string> {
  const output = printed.get(name) ?? run(name);
  printed.set(name, output);
  return output;
}

async function run(name: string): Promise<string> {
  const { OPENAI_BASE_URL: _url, OPENAI_MODEL: _model, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, [join(examplesDir, name)], { cwd: folder, env });
  return stdout;
}

/** What shows that the planner has done its work. */
const SHOWN: Readonly<Record<string, readonly RegExp[]>> = {
  // Seven tests of a hundred builds.
  '01-function.ts': [/^(\{.*\}\n){7}Build 73 broke it\.\n$/],
  '02-deterministic.ts': [/^Ana Ready\.$/m, /^Bo .*parcel for Bo.*\nBo Ready, at home\.$/m],
  '03-rules.ts': [/\[outage\] Somebody has been woken/, /\[everything-else\] We have passed this on to accounting/],
  '04-graph.ts': [/^Oslo goal \{/m, /^Bergen Take a coat\.$/m, /^Bergen no_path \{/m, /failed: \[ 'hotel' \]/],
  '05-react.ts': [/^repaired: /m, /^in_stock .*"left":3/m, /three pairs in 42 are left/],
  '06-pipeline.ts': [/^plan invalid .*\nrepair valid/m, /^rest valid/m, /^goal \{ sent: 'lamp'/m],
  '07-streaming-plan.ts': [/the plan grows[\s\S]*the plan is whole/, /^goal 4 papers were read\.$/m],
  // What was loaded is not loaded again when the van has failed.
  '08-htn.ts': [/^.*load parcel 7.*\n.*The van does not start.*\n.*skipped.*\n.*drive bike.*\n.*hand_over.*\ngoal\n$/],
  '09-htn-with-a-model.ts': [/^send_again\n/, /We are sorry/],
  '10-hddl.ts': [/✗ by stay: does not apply/, /^goal .*"drop blue dock"/m],
  '11-change-a-plan.ts': [/^paused\n/, /"40 × lamp"/, /^(?![\s\S]*written)/],
};

describe.each(examples)('%s', (name) => {
  it('runs as it stands, and its planner does its work', async () => {
    const output = await outputOf(name);
    const patterns = SHOWN[name] ?? [];
    expect(patterns, 'Say in this test what the example shows.').not.toEqual([]);
    for (const pattern of patterns) expect(output).toMatch(pattern);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is short, and the page on planners leads to it', () => {
    expect(readFileSync(join(examplesDir, name), 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(60);
    expect(doc).toContain(`(../examples/${name})`);
  });
});

interface Block {
  readonly kind: string | undefined;
  readonly file: string | undefined;
  readonly text: string;
}

/** A line before each block says where it comes from: `<!-- file: 04-graph.ts -->`, or `output` for what that prints. */
function blocksOf(markdown: string): Block[] {
  const found = markdown.matchAll(/(?:<!-- (file|output): (\S+) -->\n)?```\w*\n([\s\S]*?)```/g);
  return Array.from(found, ([, kind, file, text = '']) => ({ kind, file, text }));
}

describe('docs/planners.md', () => {
  const blocks = blocksOf(doc);

  it('shows nothing but what stands in the examples, or is printed by them', async () => {
    expect(blocks.length).toBeGreaterThan(15);
    for (const { kind, file = '', text } of blocks) {
      expect(examples, text).toContain(file);
      if (kind === 'output') expect(await outputOf(file)).toContain(text);
      else expect(readFileSync(join(examplesDir, file), 'utf8')).toContain(text);
    }
  });

  it('has no link to a heading or a file that is not there', () => {
    const headings = Array.from(doc.matchAll(/^#+ (.*)$/gm), ([, text = '']) => `#${anchorOf(text)}`);
    for (const [, target = ''] of doc.matchAll(/\]\((#[^)]*)\)/g)) expect(headings).toContain(target);
    for (const [, path = ''] of doc.matchAll(/\]\(\.\.\/examples\/([^)]+)\)/g)) expect(examples).toContain(path);
  });
});

function anchorOf(heading: string): string {
  return heading.toLowerCase().replaceAll(' ', '-');
}
