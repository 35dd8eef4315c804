/**
 * Words that people bring along: from other libraries, and from Pilotage before its options had the names of today. Each leads to the option that does it here.
 */

import { nearest } from './names.ts';

interface Ours {
  readonly option: string;
  /** How the option is written. */
  readonly write: string;
  /** Who takes it. */
  readonly of: string;
  /** What others call it, one word after the other. */
  readonly words: string;
}

const COMMAND_LINE = 'the command line';

/** In small letters and without `_` and `-`, as they are compared. The first option that the place has counts; then the first of all. */
const TABLE: readonly Ours[] = [
  // Tools.
  {
    option: 'inputSchema',
    write: 'inputSchema: z.object({ city: z.string() })',
    of: 'a tool',
    words: 'parameters params schema input argsschema args arguments jsonschema',
  },
  {
    option: 'execute',
    write: 'execute: async ({ city }) => …',
    of: 'a tool or a node',
    words: 'run handler func fn function call callback invoke implementation action',
  },
  {
    option: 'needsApproval',
    write: 'needsApproval: true',
    of: 'a tool',
    words:
      'approve approval requireapproval requiresapproval approvalrequired requireconfirmation needsconfirmation confirm interrupton interruptbefore interruptafter interrupt humanintheloop permission',
  },
  {
    option: 'outputSchema',
    write: 'outputSchema: z.object({ celsius: z.number() })',
    of: 'a tool',
    words: 'output returns resultschema result responseschema',
  },
  {
    option: 'effect',
    write: "effect: 'read'",
    of: 'a tool',
    words: 'readonly idempotent sideeffect sideeffects destructive readonlyhint destructivehint',
  },
  { option: 'timeoutMs', write: 'timeoutMs: 30_000', of: 'a tool', words: 'timeout timelimit timelimitms' },
  { option: 'costUsd', write: 'costUsd: 0.002', of: 'a tool, or in limits', words: 'cost price costmicrousd' },
  { option: 'loading', write: "loading: 'deferred'", of: 'a tool', words: 'deferloading defer lazy' },
  { option: 'examples', write: "examples: [{ args: { city: 'Oslo' } }]", of: 'a tool', words: 'inputexamples' },
  // Runs.
  {
    option: 'limits',
    write: 'limits: { steps: 20, costUsd: 0.5 }',
    of: 'createRuntime, agent, start and fork',
    words:
      'maxsteps steps stopwhen maxturns turns recursionlimit maxiterations maxrounds calls tokens onceiling costusd maxcostusd maxcost maxbudgetusd budget budgets deadline deadlineat deadlinems timeout timeoutms maxtotaltokens',
  },
  {
    option: 'steps',
    write: 'limits: { steps: 20 }',
    of: 'createRuntime, agent, start and fork',
    words: 'maxsteps stopwhen maxturns recursionlimit maxiterations',
  },
  {
    option: 'identity',
    write: "identity: local('ana', { session: 'chat-1' })",
    of: 'start',
    words:
      'threadid thread sessionid session conversationid conversation user userid tenant tenantid runid configurable resourceid',
  },
  {
    option: 'history',
    write: "history: [{ role: 'user', text: 'Hi.' }]",
    of: 'start',
    words: 'messages messagehistory chathistory initialmessages previousmessages',
  },
  {
    option: 'context',
    write: "context: { meta: { plan: 'pro' } }",
    of: 'start',
    words:
      'deps dependencies runtimecontext requestcontext contextvariables metadata meta args hints skills toolscontext',
  },
  {
    option: 'signal',
    write: 'signal: AbortSignal.timeout(60_000)',
    of: 'start',
    words: 'abortsignal abortcontroller cancellationtoken',
  },
  {
    option: 'scopes',
    write: "scopes: ['mail.send']",
    of: 'a tool and start',
    words: 'permissions roles scope entitlements',
  },
  {
    option: 'disallowedTools',
    write: "context: { hints: { disallowedTools: ['send_mail'] } }",
    of: 'start',
    words: 'toolchoice activetools allowedtools excludetools tooluse',
  },
  {
    option: 'planningHints',
    write: "planningHints: { constraints: 'Never mail twice.' }",
    of: 'a configuration',
    words: 'hints constraints',
  },
  // Agents and runtimes.
  {
    option: 'agents',
    write: 'agents: [agent({ name, planner, tools })]',
    of: 'createRuntime',
    words: 'planners equippedplanners workflows',
  },
  {
    option: 'tools',
    write: "tools: [agentTool(writer, { description: 'Writes an article.' })]",
    of: 'agent and createRuntime',
    words: 'handoffs handoff subagents subagent members workers functions toolset toolkits actions',
  },
  {
    option: 'planner',
    write: 'planner: react({ model })',
    of: 'agent and createRuntime',
    words: 'model llm agentloop strategy',
  },
  {
    option: 'journal',
    write: "journal: 'runs.db'",
    of: 'createRuntime',
    words: 'checkpointer checkpoint checkpoints saver storage store persistence database db',
  },
  {
    option: 'memory',
    write: "memory: { strategy: 'window', turns: 10 }",
    of: 'createRuntime',
    words: 'sessionmemory chatmemory',
  },
  {
    option: 'policy',
    write: "policy: ({ tool }) => tool !== 'send_mail' || 'Mail is not sent from here.'",
    of: 'createRuntime',
    words:
      'guardrails inputguardrails outputguardrails toolguardrails middleware canusetool permissionmode beforetoolcall wraptoolcall',
  },
  {
    option: 'parallelCalls',
    write: 'parallelCalls: 4',
    of: 'createRuntime and agent',
    words: 'maxconcurrency concurrency maxparallelcalls maxparallel',
  },
  {
    option: 'events',
    write: 'for await (const event of run.events()) …',
    of: 'the run that start gives',
    words:
      'onstepfinish onfinish onchunk onevent ontoken onabort onsteperror ontoolcall callbacks hooks lifecyclehooks stream streaming streammode telemetry experimentaltelemetry tracing',
  },
  // Models.
  {
    option: 'systemPrompt',
    write: "systemPrompt: 'You answer in one sentence.'",
    of: 'react',
    words: 'system instructions systemmessage prompt statemodifier backstory persona role',
  },
  {
    option: 'temperature',
    write: 'react({ model, temperature: 0.2 })',
    of: 'react',
    words: 'temperature modelsettings callsettings settings',
  },
  {
    option: 'maxOutputTokens',
    write: 'maxOutputTokens: 4_000',
    of: 'react',
    words: 'maxtokens maxcompletiontokens maxoutputtokens',
  },
  {
    option: 'parallelToolCalls',
    write: 'parallelToolCalls: false',
    of: 'react',
    words: 'paralleltoolcalls disableparalleltooluse',
  },
  {
    option: 'answerSchema',
    write: 'answerSchema: z.toJSONSchema(schema)',
    of: 'react',
    words: 'outputtype responseformat structuredoutput resulttype outputschema experimentaloutput output schema',
  },
  {
    option: 'model',
    write: 'model: wrapLanguageModel({ model, middleware: defaultSettingsMiddleware({ settings: { topP: 0.9 } }) })',
    of: 'react',
    words: 'topp topk seed presencepenalty frequencypenalty stopsequences stop logitbias reasoningeffort',
  },
  // The command line.
  {
    option: 'max-steps',
    write: '--max-steps 20',
    of: COMMAND_LINE,
    words: 'maxturns maxiterations recursionlimit steps',
  },
  { option: 'max-cost-usd', write: '--max-cost-usd 0.5', of: COMMAND_LINE, words: 'maxbudgetusd maxcost budget' },
  { option: 'session', write: '--session chat-1', of: COMMAND_LINE, words: 'thread threadid conversation' },
  // Answers.
  {
    option: 'args',
    write: 'args: { amount: 5 }',
    of: 'approve',
    words: 'arguments editedargs updatedinput input modifiedargs edits',
  },
  { option: 'reason', write: "reason: 'too expensive'", of: 'reject', words: 'message feedback comment why' },
  {
    option: 'payload',
    write: "payload: { message: 'It is A-17.' }",
    of: 'resume, answer and the decisions of planners',
    words: 'message answer result value output text words content response',
  },
  // Rules, and the decisions of planners.
  { option: 'match', write: 'match: (run) => …', of: 'a rule', words: 'when if condition test predicate' },
  {
    option: 'toPlanStep',
    write: "toPlanStep: () => ({ id: 'a', type: 'tool', toolId: 'search', input: {} })",
    of: 'a rule',
    words: 'then do step action handler execute run',
  },
  {
    option: 'branches',
    write: "branches: [{ tool: 'search', args: {} }]",
    of: 'call_parallel',
    words: 'calls toolcalls',
  },
  { option: 'query', write: "query: 'Find three prices.'", of: 'the spec of a task', words: 'goal prompt task input' },
  { option: 'usd', write: 'usd: 0.03', of: 'context.spent', words: 'costusd cost price' },
  { option: 'text', write: "text: 'Hi.'", of: 'a message', words: 'role content parts' },
  // Attachments.
  { option: 'bytes', write: 'bytes: await readFile(path)', of: 'inputs', words: 'data base64' },
  { option: 'mime', write: "mime: 'image/png'", of: 'inputs', words: 'mediatype mimetype' },
];

const WORDS = TABLE.flatMap(({ words }) => words.split(' '));
/** Shorter words must be the same letter by letter. */
const LONG = 6;

/**
 * What to write in place of a word; `undefined` for a word that nobody is known to use. `option` is absent where the option belongs to
 * another place.
 */
export function ourWordFor(
  word: string,
  known: readonly string[],
): { readonly option?: string; readonly advice: string } | undefined {
  const plain = plainWord(word);
  const near = plain.length < LONG ? plain : (nearest(plain, WORDS, 1) ?? plain);
  const meant = TABLE.filter(({ words }) => words.split(' ').includes(near));
  const here = meant.find(({ option }) => known.includes(option));
  if (here !== undefined) return { option: here.option, advice: `Write ${here.write}.` };
  // Another place may call an option just so. A program is not told of the command line where it has an option of its own.
  const same = TABLE.find(({ option, of }) => plainWord(option) === plain && of !== COMMAND_LINE);
  const elsewhere = same ?? meant[0] ?? TABLE.find(({ option }) => plainWord(option) === plain);
  return elsewhere && { advice: `It is ${elsewhere.write}, an option of ${elsewhere.of}.` };
}

/** How words are compared: `max_steps` is `maxSteps`. */
export function plainWord(word: string): string {
  return word.replaceAll(/[_-]/g, '').toLowerCase();
}
