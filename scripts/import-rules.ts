/** Who may import what: the table of rooms under `src/`, and the few parts that only one file may touch. */

export interface Room {
  /** Rooms that its files may import, through their doors; its own files always; `any` means every room. */
  readonly mayImport: readonly string[] | 'any';
  /** Rooms that its files may import with `import type` only. */
  readonly typesOnly?: readonly string[];
  /** Files of the room may import packages. */
  readonly packages: boolean;
  /** The room whose door this folder shares. The folders behind one door import each other by relative paths, as far as `mayImport` and `typesOnly` say. */
  readonly behind?: string;
  /** The check fails when it has read no file of this room. */
  readonly required?: true;
}

const PLAIN_PLANNERS = ['deterministic', 'finish', 'graph', 'rules', 'htn'].map((name) => `planners/${name}`);
const MODEL_PLANNERS = ['planners/react', 'planners/pipeline', 'planners/htn-model'];
const FOR_MODEL_PLANNERS = ['core', 'model', 'prompt', 'parse', 'schema', 'plans', 'planners'];
const plainPlanner: Room = { mayImport: ['core', 'plans'], packages: true };
const modelPlanner: Room = { mayImport: FOR_MODEL_PLANNERS, packages: true };

const BELOW_THE_RUN = ['core', 'journal', 'state', 'tools'];

/** A file belongs to the longest name here that its path under `src/` begins with. */
export const ROOMS: Readonly<Record<string, Room>> = {
  core: { mayImport: [], packages: false, required: true },
  journal: { mayImport: ['core'], packages: true, required: true },
  state: { mayImport: ['core'], packages: true, required: true },
  // What carries a run out: four folders behind the door of `runtime`, each above the one before.
  tasks: { mayImport: BELOW_THE_RUN, typesOnly: ['loop'], packages: true, behind: 'runtime' },
  calls: {
    mayImport: [...BELOW_THE_RUN, 'model', 'tasks'],
    typesOnly: ['loop'],
    packages: true,
    behind: 'runtime',
  },
  loop: { mayImport: [...BELOW_THE_RUN, 'schema', 'tasks', 'calls'], packages: true, behind: 'runtime' },
  runtime: {
    mayImport: [...BELOW_THE_RUN, 'schema', 'messages', 'tasks', 'calls', 'loop'],
    packages: true,
    required: true,
  },
  // Conversations in the words of the AI SDK, of which nothing is loaded.
  messages: { mayImport: ['core'], typesOnly: ['state'], packages: false },
  // JSON Schema, for the inputs of tools and the shape of plans.
  schema: { mayImport: ['core'], packages: true },
  tools: { mayImport: ['core', 'schema'], typesOnly: ['model'], packages: true, required: true },
  model: { mayImport: ['core'], packages: true, required: true },
  prompt: { mayImport: ['core'], typesOnly: ['model'], packages: true },
  parse: { mayImport: ['core'], packages: true },
  // What planners that make plans share.
  plans: { mayImport: ['core', 'schema'], packages: true },
  // What planners that ask a model share.
  planners: { mayImport: ['core', 'model'], packages: true, required: true },
  ...Object.fromEntries(MODEL_PLANNERS.map((name) => [name, modelPlanner])),
  ...Object.fromEntries(PLAIN_PLANNERS.map((name) => [name, plainPlanner])),
  // A model for the choices of the htn planner.
  'planners/htn-model': { mayImport: [...FOR_MODEL_PLANNERS, 'planners/htn'], packages: true },
  config: {
    mayImport: ['core', 'schema', 'journal', 'model', 'planners', ...MODEL_PLANNERS, ...PLAIN_PLANNERS, 'runtime'],
    typesOnly: ['server'],
    packages: false,
  },
  flow: { mayImport: ['core', 'tools'], packages: true },
  // What keeps runs moving over many machines.
  engine: { mayImport: ['core', 'runtime'], packages: true },
  // A runtime behind HTTP, in the words of its clients.
  server: {
    mayImport: ['core', 'journal', 'messages', 'runtime', 'schema', 'state', 'tools'],
    packages: true,
  },
  // Our own API from the other side, in browsers too: nothing but types is ours.
  client: { mayImport: [], typesOnly: ['core', 'journal', 'messages', 'runtime', 'state'], packages: false },
  telemetry: { mayImport: ['core'], packages: true },
  testing: { mayImport: 'any', packages: true, required: true },
  cli: { mayImport: 'any', packages: true, required: true },
};

/** Modules that only the files matching the pattern may import, so that nobody loads them without asking for them. */
export const RESERVED: Readonly<Record<string, RegExp>> = {
  '@ag-ui/encoder': /^src\/server\/ag-ui\/encoding\.ts$/,
  '@ai-sdk/openai-compatible': /^src\/model\/openai-compatible\.ts$/,
  '@opentelemetry/api': /^src\/telemetry\/[^/]+\.ts$/,
  '@modelcontextprotocol/server': /^src\/server\/mcp\/[^/]+\.ts$/,
  jose: /^src\/server\/auth\/jwt\.ts$/,
  'node:sqlite': /^src\/journal\/sqlite\/[^/]+\.ts$/,
};
