/** `pilotage serve`: answers HTTP with the runtime of the project, and carries out due runs, until it is told to stop. */
import { defined, PilotageError, Redaction, Thrown } from '#core';
import { createRuntime, type Runtime } from '#runtime';
import { api, createHandler, type Handler, type Served, serve } from '#server';
import { GRACE_MS } from './follow-run.ts';
import type { Options } from './options.ts';
import { findProject, journalOf, type Project, setUpProject, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { shortLine, terminalJson } from './text.ts';

const DEFAULT_PORT = 4_400;
const LOOPBACK = '127.0.0.1';
const HERE: readonly string[] = [LOOPBACK, '::1', 'localhost'];
/** After the grace: for the journal to take what is given back. */
const GIVE_BACK_MS = 5_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** @returns the exit code. */
export async function serveCommand(options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  assertSafe(options, project);
  const { runtime: made } = await setUpProject(options, project);
  const { concurrency } = options;
  const slots = defined({ maxLiveRuns: concurrency, maxLiveRunsPerTenant: made.maxLiveRunsPerTenant ?? concurrency });
  const say = teller(options, terminal);
  return withJournal(journalOf(options, project), async (journal) => {
    const onFault = (error: unknown): void => say('fault', faultWords(error));
    const runtime = createRuntime({ ...made, ...slots, journal, onFault });
    try {
      const { parts = [api()], ...more } = project?.server ?? {};
      const handler = createHandler({ ...more, parts, runtime, onFault });
      // A journal that cannot be used is told of before anybody connects.
      await runtime.list({ limit: 1 });
      return await answer(handler, runtime, options, say);
    } finally {
      await runtime.close();
    }
  });
}

/** @throws UsageError when others would be answered whom nobody has let in. */
function assertSafe({ host = LOOPBACK }: Options, project: Project | undefined): void {
  if (project?.server?.authenticate !== undefined || HERE.includes(host)) return;
  throw new UsageError(
    `Beyond this machine (--host ${host}) the server needs to know who asks: give server.authenticate in the configuration, such as bearerKeys({ file }).`,
  );
}

type Say = (fact: string, about: Readonly<Record<string, unknown>>) => void;

/** @returns the exit code. */
async function answer(handler: Handler, runtime: Runtime, options: Options, say: Say): Promise<number> {
  const { port = DEFAULT_PORT, host = LOOPBACK, agents, graceMs = GRACE_MS } = options;
  const stopped = Promise.withResolvers<NodeJS.Signals>();
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    // A second one aborts what is under way.
    if (isStopping) void runtime.close({ graceMs: 0 });
    else stopped.resolve(signal);
    isStopping = true;
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  let served: Served | undefined;
  try {
    served = await listening(handler, { port, host });
    work(runtime, agents);
    for (const [group, routes] of groupsOf(handler)) say('routes', { group, routes });
    say('serving', { url: served.url, pid: process.pid });
    const signal = await stopped.promise;
    say('draining', { signal, graceMs });
    return await drained(served, runtime, graceMs, say);
  } finally {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
    await served?.close();
  }
}

async function listening(handler: Handler, at: { readonly port: number; readonly host: string }): Promise<Served> {
  try {
    return await serve(handler, at);
  } catch (error) {
    if (!PilotageError.is(error, 'invalid_config')) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}

function work(runtime: Runtime, agents: readonly string[] | undefined): void {
  try {
    runtime.work(defined({ agents }));
  } catch (error) {
    if (!PilotageError.is(error, 'agent_unknown')) throw error;
    throw new UsageError(`--agent: ${error.message}`, { cause: error });
  }
}

/** Nobody new is answered; runs that are under way may end, and are given back; readers come again, to whoever answers then. */
async function drained(served: Served, runtime: Runtime, graceMs: number, say: Say): Promise<number> {
  const startedAt = performance.now();
  const late = setTimeout(() => process.exit(EXIT.terminated), Math.min(graceMs + GIVE_BACK_MS, LONGEST_TIMER_MS));
  served.server.close();
  await runtime.close({ graceMs });
  clearTimeout(late);
  say('drained', { ms: Math.round(performance.now() - startedAt) });
  return EXIT.goal;
}

/** How many routes begin with each first word. */
function groupsOf({ app }: Handler): ReadonlyMap<string, number> {
  const groups = new Map<string, number>();
  for (const { method, path } of app.routes) {
    if (method === 'ALL' && path === '/*') continue;
    const group = `/${path.split('/')[1] ?? ''}`;
    groups.set(group, (groups.get(group) ?? 0) + 1);
  }
  return groups;
}

function faultWords(error: unknown): Readonly<Record<string, unknown>> {
  const { code, name, message } = Thrown.of(error);
  return { code: code ?? name, message: shortLine(new Redaction().all(message), 500) };
}

function teller({ json }: Options, terminal: Terminal): Say {
  return (fact, about) => {
    if (json) terminal.write(`${terminalJson({ at: new Date().toISOString(), fact, ...about })}\n`);
    else terminal.note(textOf(fact, about), fact === 'fault' ? 'bad' : 'plain');
  };
}

function textOf(fact: string, about: Readonly<Record<string, unknown>>): string {
  switch (fact) {
    case 'routes':
      return `  ${String(about['group']).padEnd(20)} ${about['routes']} ${about['routes'] === 1 ? 'route' : 'routes'}`;
    case 'serving':
      return `pilotage serves ${about['url']}. Ctrl-C ends it.`;
    case 'draining':
      return `${about['signal']}: what is under way may end.`;
    case 'drained':
      return `Done after ${about['ms']} ms.`;
    default:
      return `pilotage: ${about['message']} (${about['code']})`;
  }
}
