/** The numbered examples run as they stand, and the pages of `docs` that lead to them show what they are and what they print. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import type { Json, PilotageError } from '#core';
import {
  type Edge,
  edge,
  type FlowBudget,
  type FlowFault,
  flow,
  type GraphNode,
  join as joinOf,
  node,
  predicateRouter,
  race as raceOf,
  unionRouter,
} from '#flow';
import { builtUrl } from '../kit/built.ts';
import { projectDir } from '../kit/project.ts';

const examplesDir = join(projectDir, 'examples');
const examples = readdirSync(examplesDir).filter((name) => /^\d\d-.*\.ts$/.test(name));

interface Page {
  readonly file: string;
  readonly text: string;
  /** The examples that it shows. */
  readonly examples: readonly string[];
  /** It shows no fewer. */
  readonly leastBlocks: number;
}

const firstOfFlows = '12';
const firstOfTools = '17';
const firstOfAgents = '20';
const firstOfMoreTools = '26';
const firstOfSessions = '27';
const firstOfMemory = '40';
const firstOfWaits = '46';
const firstOfSchedules = '50';
const firstOfStreams = '56';
const firstBehindStreams = '59';
const firstOfUndo = '54';
const firstOfServer = '68';
const pages: readonly Page[] = [
  page('docs/planners.md', 16, (name) => name < firstOfFlows),
  page('docs/flows.md', 16, (name) => name >= firstOfFlows && name < firstOfTools),
  page('docs/tools.md', 8, (name) => isOfTools(name)),
  page('docs/agents.md', 9, (name) => name >= firstOfAgents && name < firstOfMoreTools),
  page('docs/sessions.md', 5, (name) => name >= firstOfSessions && name < firstOfMemory),
  page('docs/approvals.md', 5, (name) => isOfApprovals(name)),
  page('docs/schedules.md', 6, (name) => name >= firstOfSchedules && name < '52'),
  page('docs/memory.md', 5, (name) => name >= firstOfMemory && name < firstOfWaits),
  page('docs/waits.md', 4, (name) => name >= firstOfWaits && name < firstOfSchedules),
  page('docs/streams.md', 6, (name) => name >= firstOfStreams && name < firstBehindStreams),
  page('docs/compared.md', 3, (name) => name >= firstBehindStreams && name < firstOfServer),
  page('docs/server.md', 2, (name) => name === '70-server.ts'),
  page('docs/testing.md', 5, (name) => name >= '71'),
  page('docs/undo.md', 6, (name) => name >= firstOfUndo && name < firstOfStreams),
];

function isOfApprovals(name: string): boolean {
  return name >= '52' && name < '54';
}

function isOfTools(name: string): boolean {
  return (name >= firstOfTools && name < firstOfAgents) || (name >= firstOfMoreTools && name < firstOfSessions);
}

function page(file: string, leastBlocks: number, shows: (name: string) => boolean): Page {
  const text = readFileSync(join(projectDir, file), 'utf8');
  return { file, text, examples: examples.filter(shows), leastBlocks };
}

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
  const args = ['--import', ON_BUILD, join(examplesDir, name)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, env });
  return stdout;
}

/** Has a program get the build where it imports the sources, as a user's program does: it starts in less than half of the time. */
const ON_BUILD = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
const sources = '${pathToFileURL(join(projectDir, 'src'))}/';
const built = '${new URL('./', builtUrl('src/index.ts'))}';
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    if (!found.url.startsWith(sources)) return found;
    return { ...found, url: built + found.url.slice(sources.length).replace(/ts$/, 'js'), format: 'module' };
  },
});
`)}`;

/** What shows that the planner has done its work. */
const SHOWN: Readonly<Record<string, readonly RegExp[]>> = {
  // Seven tests of a hundred builds.
  '01-function.ts': [/^(\{.*\}\n){7}Build 73 broke it\.\n$/],
  '02-deterministic.ts': [/^Ana Ready\.$/m, /^Bo .*parcel for Bo.*\nBo Ready, at home\.$/m],
  '03-rules.ts': [/\[outage\] Somebody has been woken/, /\[everything-else\] We have passed this on to accounting/],
  '04-graph.ts': [/^Oslo goal \{/m, /^Bergen Take a coat\.$/m, /^Bergen plan_failed \{/m, /failed: \[ 'hotel' \]/],
  '05-react.ts': [/^repaired: /m, /^in_stock .*"left":3/m, /three pairs in 42 are left/],
  '06-pipeline.ts': [/^plan invalid .*\nrepair valid/m, /^rest valid/m, /^goal \{ sent: 'lamp'/m],
  '07-streaming-plan.ts': [/the plan grows[\s\S]*the plan is whole/, /^goal 4 papers were read\.$/m],
  // What was loaded is not loaded again when the van has failed.
  '08-htn.ts': [/^.*load parcel 7.*\n.*The van does not start.*\n.*skipped.*\n.*drive bike.*\n.*hand_over.*\ngoal\n$/],
  '09-htn-with-a-model.ts': [/^send_again\n/, /We are sorry/],
  '10-hddl.ts': [/✗ by stay: does not apply/, /^goal .*"drop blue dock"/m],
  '11-change-a-plan.ts': [/^paused\n/, /"40 × lamp"/, /^(?![\s\S]*written)/],
  '12-flow.ts': [/^by van for 47, .*\nby air for 125, .*\nnode_exception: .*stock.*No such item/, /^flowchart TD$/m],
  '13-flow-as-a-tool.ts': [/^read\.item \{"reading":/m, /^research .*"papers":2/m, /\nTwo papers, 43 pages/],
  // The letter that was approved, and not the one that the flow wrote.
  '14-flow-approval.ts': [
    /^paused approval_required .*sorry/,
    /^goal (?!.*sorry).*A new lamp/m,
    /^1 shorten tool\.completed$/m,
  ],
  '15-flow-document.ts': [
    /^Thank you .*\nPaid back: /,
    /^support\.yaml:10:24 .*"classify"\?$/m,
    /:19:16 \/edges\/0\/1: /,
  ],
  '16-flow-failure.ts': [/^other_card after card_refused\npaid with the valid card\nsorry: pay tool_rejected\n$/],
  '16-flow-race.ts': [/^.*\n90 are covered\.\n.*\nThe person says false\.\n.*"branch":"late".*\nNobody has answered/],
  '70-server.ts': [/^paused\nrefund \[ 'approve', 'reject', 'answer' \]\ntool\.completed refund\nPaid back\.\n$/],
  '71-test-an-agent.ts': [/^2 decisions agree\nDear Ana, it was 42\.\n$/],
  '72-crash-test.ts': [/^true \[\]\n$/],
  // The order of the first page is not made in the second one before that is filled again.
  '17-live-handle.ts': [
    /^closed with 2 .*: closing$/m,
    /\nhandle\.lost 1\norder .*handle_lost.*\nhandle\.opened 2\n/,
    /\norder .*\["lamp","bulb"\]/,
  ],
  '18-ai-sdk-tools.ts': [/^1 .*day 1 of 2"\n2 .*\n3 \{.*\n.*"value":\{.*"orders":14\}\}\n$/],
  '19-tool-with-a-model.ts': [/^finished 160 tokens of 1000$/m, /^failed 80 tokens of 85\nThe node "rome" .* no room/m],
  '20-agent-as-tool.ts': [/^write .*"title":"Warm without gas"/, /\nThe article .* is ready\.\n$/],
  '21-supervisor.ts': [/^market .*42 euros.*\nsums .*4,200 euros.*\nYour 100 shares .* 2 calls of others\n$/],
  // Who reads up on Atlantis fails alone.
  '22-parallel-research.ts': [/"no_path"/, /717,000/, /294,000/, /\nOslo is larger than Bergen\./],
  '23-hand-over.ts': [/^refunds asks: Which order .*\ndesk says: .*A-17, are paid back/],
  // The words that the person has added.
  '24-mail-assistant.ts': [/^52017 characters to /, /characters: 52028/, /\nThe mail is out\.\n$/],
  '26-screenshot.ts': [/^I was shown 1 picture\.$/m, /^in the journal: its reference$/m],
  '40-store.ts': [/^note 0 of step 0 .*tea.*\nnote 1 of step 2 .*Momo.*\nfound .*Momo/, /^of Ben \[\]$/m],
  '41-remember.ts': [/^Green tea, as ever\?$/m, /"profile":\{"city":"Ulm"\}/, /^profile \{ city: 'Ulm' \}$/m],
  // Nine in the morning, before and after the change of the clocks, but not while it is paused.
  '50-schedule.ts': [
    /^2026-04-01T12:\S+ finished triggered\n.*-31T07:.*\n.*-30T07:.*\n.*-27T08:.*\n4 runs of sales\n$/,
  ],
  '51-start-later.ts': [/^Remind Ben pending 00:01:00\nfinished finished\ntrue forecast\n/, /^rate_limited 00:01:01$/m],
  '52-approvals.ts': [
    /^The third refund\. 2 people\nbea says yes\nbea has approved already.*1 more must\.\ncem says yes\n/,
    /policy_refused.*At most 500 euros/,
  ],
  '53-remembered.ts': [
    /^paused\nfinished and nobody was asked\nmail approve by a rule of ana\npaused .*\npaused .*revoked\n$/,
  ],
  '59-feedback.ts': [/^A letter about the sea\?\n.*'Shorter, please\.' \}\n$/],
  // Each question is the answer to what was said.
  '60-asked-again.ts': [/^How old are you\?\n(That is no age\. .*\n){2}25 years old\n$/],
  '61-birthday-card.ts': [/^(to (bo|cy|di): Do you come\? card-7\/\2\n){3}to eva: .* from bo and di\n/],
  '62-racing-agents.ts': [/^quick answer\n$/],
  '63-nobody-answers.ts': [/^\{.*evaluate it yourself\.' \}\nNot approved: /],
  // The webhook came twice, and before its payment waited.
  '64-payment.ts': [/^waited event\n\{ amount: 90, .*'succeeded' \}\n$/],
  '65-saga.ts': [/^flight .* booked\ncar .* booked\ncar .* cancelled\nflight .* cancelled\ncancelled\n$/],
  '66-cron.ts': [/^Take out the recycling tonight\. \(stored\)\nactive 1\n$/],
  '56-stream.ts': [/^\[ 'value', 'cancelled' \]\n2 .*page: 2 \}\n3 .*page: 3 \}\n$/],
  '57-background.ts': [
    /^video .*task: 'cats\.0\.0'.*\nwriter .*task: 'cats\.1\.0'/,
    /'A text about cats', 'cats\.mp4'/,
  ],
  '58-breakpoints.ts': [/^measure\nstands before cut\ncut\nstands before glue\nglue\nstands before paint\npaint\n$/],
  '46-question.ts': [/^A room in Oslo is held\.\n.*\npayload_invalid\n.*nights: 2 \} \}\n$/],
  '47-race.ts': [/^rule .*nobody has answered"\}$/m, /^render \{"kind":"value","value":\{"film":"oslo\.mp4"\}\}$/m],
  '48-signal.ts': [
    /^new kept\nknown kept\nevent order-18 true\npayload_invalid\ntold 1\n/,
    /^\{ kind: 'value', value: 'Order 17 is paid \(90\), and on its way\.' \}$/m,
  ],
  '49-client-tool.ts': [
    /^wall\.call_1 pick_color .*\npayload_invalid\nwall\.call_2 scroll_to .*\n.*"color":"red".*\n.*no_wall/,
  ],
  // The second message waited; the branch of the edit has one turn.
  '28-go-on.ts': [
    /^Order A-17 is paid back\.\nTo your card\.\n/,
    /^refunds: Where does it go\?$/m,
    /^user assistant tool assistant user assistant$/m,
  ],
  '54-undo.ts': [/^book hotel\nbook flight\ncancel flight-1\ncancel hotel-1\ncancelled /],
  '55-answer-at-the-limit.ts': [/^max_steps \| The best offer so far: 97 euros/],
  '27-session.ts': [/^started queued\nknown\n/, /^turn 3 I want a chair\.$/m, /^Furniture 3$/m],
  '25-long-chat.ts': [/^You have written 1000 times\.\n1000 replies\n$/],
};

describe.each(examples)('%s', (name) => {
  it('runs as it stands, and its planner does its work', async () => {
    const output = await outputOf(name);
    const patterns = SHOWN[name] ?? [];
    expect(patterns, 'Say in this test what the example shows.').not.toEqual([]);
    for (const pattern of patterns) expect(output).toMatch(pattern);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is short, and its page leads to it', () => {
    const most = name < firstOfAgents ? 60 : 40;
    expect(readFileSync(join(examplesDir, name), 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(most);
    const shows = pages.filter((page) => page.examples.includes(name));
    expect(shows.map(({ text }) => text.includes(`(../examples/${name})`))).toEqual([true]);
  });
});

interface Block {
  readonly kind: string | undefined;
  readonly file: string | undefined;
  readonly text: string;
}

/**
 * A line before each block says where it comes from: `<!-- file: 04-graph.ts -->`, or `output` for what that prints. What commands print stands in
 * `console` blocks without such a line, which a test of the command plays.
 */
function blocksOf(markdown: string): Block[] {
  const text = markdown.replaceAll(/(?<!-->\n)```console\n[\s\S]*?```/g, '');
  const found = text.matchAll(/(?:<!-- (file|output): (\S+) -->\n)?```\w*\n([\s\S]*?)```/g);
  return Array.from(found, ([, kind, file, text = '']) => ({ kind, file, text }));
}

describe.each(pages)('$file', ({ file: path, text: doc, examples: shown, leastBlocks }) => {
  const blocks = blocksOf(doc);

  it('shows nothing but what stands in its examples, or is printed by them', async () => {
    expect(blocks.length).toBeGreaterThanOrEqual(leastBlocks);
    for (const { kind, file = '', text } of blocks) {
      expect(shown, text).toContain(file);
      if (kind === 'output') expect(await outputOf(file)).toContain(text);
      else expect(readFileSync(join(examplesDir, file), 'utf8')).toContain(text);
    }
  });

  it('has no link to a heading or a file that is not there', () => {
    for (const [, file = '', heading = ''] of doc.matchAll(/\]\((?!https?:)([^#)]*)#?([^)]*)\)/g)) {
      const target = file === '' ? path : join(dirname(path), file);
      expect(existsSync(join(projectDir, target)), target).toBe(true);
      if (heading !== '') expect(headingsOf(readFileSync(join(projectDir, target), 'utf8')), target).toContain(heading);
    }
  });
});

describe('docs/flows.md', () => {
  it('says of refused flows what these are told', () => {
    const doc = readFileSync(join(projectDir, 'docs/flows.md'), 'utf8');
    const rows = Array.from(
      doc.matchAll(/^\| `(\w+)` \| (.*) \|$/gm),
      ([, code = '', message = '']) => `${code}: ${message}`,
    );
    const told = refusedFlows().flatMap((build) => faultsOf(build));
    const first = rows.findIndex((row) => row.startsWith('unreachable'));
    const last = rows.findIndex((row) => row.startsWith('back_edges_meet'));
    expect(last - first).toBeGreaterThan(15);
    for (const row of rows.slice(first, last + 1)) expect(told).toContain(row);
  });
});

/** What the table of faults is taken from. */
function refusedFlows(): readonly (() => unknown)[] {
  const plain = (name: string, allowCycle = false) =>
    node(name, { effect: 'pure', allowCycle, execute: (given: Json) => given });
  const [a, b, c, d] = [plain('a'), plain('b'), plain('c'), plain('d')] as const;
  const pick = predicateRouter<Json>({ branches: [{ when: () => true, to: b }], default: c }).asNode('pick');
  const joined = (...of: readonly GraphNode[]) => joinOf('both', { of, effect: 'pure', execute: () => 1 });
  const made = (parts: { entry: GraphNode; exit: unknown; edges?: readonly Edge[]; budget?: FlowBudget }) => () =>
    flow({ name: 'f', inputSchema: {}, ...parts, exit: parts.exit as never });
  const again = (router: string, exit: GraphNode) =>
    predicateRouter<Json>({ branches: [{ when: () => true, to: round }], default: exit }).asNode(router, {
      allowCycle: true,
    });
  const [round, left, right] = [plain('p', true), plain('q', true), plain('s', true)] as const;
  const leading = node('c', { execute: () => 1, onError: d as never });
  const lost = unionRouter({ select: 'kind', branches: { x: undefined as never } }).asNode('pick');
  const without = node('a', { execute: undefined as never, effect: 'pure' });
  return [
    made({ entry: a, exit: b, edges: [edge(a, b), edge(c, d)] }),
    made({ entry: a, exit: [b, c], edges: [edge(a, b)] }),
    made({ entry: a, exit: [] }),
    ...[raceOf('r', { of: [] }), raceOf('r', { of: [a, b], need: 3 }), raceOf('r', { of: [a, leading] })].map((race) =>
      made({ entry: race, exit: race }),
    ),
    made({ entry: a, exit: b, edges: [edge(a, pick)] }),
    made({ entry: a, exit: [b, c], edges: [edge(a, b), edge(a, c)] }),
    made({ entry: a, exit: d, edges: [edge(a, b), edge(a, c), edge(b, d), edge(c, d)] }),
    made({ entry: a, exit: joined(b, c), edges: [edge(a, pick)] }),
    made({ entry: a, exit: joined(pick, c), edges: [edge(a, pick)] }),
    made({ entry: a, exit: pick, edges: [edge(a, pick)] }),
    made({ entry: a, exit: b, edges: [edge(a, b), edge(a, plain('b'))] }),
    made({ entry: lost, exit: a }),
    made({ entry: without, exit: without }),
    made({ entry: node('pay', { policy: { retries: 2 }, execute: () => 1 }), exit: a }),
    made({ entry: a, exit: a, budget: { hops: -1 } }),
    made({ entry: a, exit: b, edges: [edge(a, b), edge(b, a)] }),
    made({
      entry: round,
      exit: joined(c, d),
      budget: { hops: 9 },
      edges: [edge(round, left), edge(round, right), edge(left, again('rp', c)), edge(right, again('rq', d))],
    }),
  ];
}

function faultsOf(build: () => unknown): string[] {
  try {
    build();
  } catch (error) {
    const { faults } = (error as PilotageError).data as unknown as { faults: readonly FlowFault[] };
    return faults.map(({ code, message }) => `${code}: ${message}`);
  }
  throw new Error('It was built.');
}

function headingsOf(markdown: string): string[] {
  return Array.from(markdown.matchAll(/^#+ (.*)$/gm), ([, text = '']) => anchorOf(text));
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}
