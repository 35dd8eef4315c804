/** A run as one JSON value. */
import { describe, expect, it } from 'vitest';
import { readTrajectory, trajectoryOf } from '#state';
import { call, finish, script } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const bytes = Buffer.from('a,b');

async function played() {
  const report = make('report', async (_, { saveArtifact }) => {
    await saveArtifact('x', { mime: 'text/csv', fileName: 'out.csv' });
    return 'y'.repeat(40_000);
  });
  const spawn = {
    kind: 'spawn_task',
    task: 'foreground',
    spec: { description: 'd', query: 'child' },
    groupId: 'g',
  } as const;
  const pause = { kind: 'request_pause', reason: 'external_event' } as const;
  const steps = script(call('report'), spawn, pause, finish('done'));
  const made = world({
    planner: (run, signal) => (run.query === 'child' ? finish('task') : steps(run, signal)),
    tools: [report],
  });
  const run = await start(made, {
    context: { hints: { maxParallel: 4 }, retrieved: { doc: 1 }, skills: [{ name: 's', title: 'S' }] },
    inputs: [{ bytes, mime: 'text/csv', fileName: 'in.csv' }],
    whileAsked: 'keep',
  });
  await run.result();
  await run.steer('USER_MESSAGE', { message: 'And quickly.' });
  await run.resume({ payload: { message: 'Go.' } });
  await run.result();
  return { ...made, run };
}

describe('a trajectory', () => {
  it('TJ-15 carries what the run was given, heard and came to, beside its steps', async () => {
    const { run, journal } = await played();
    const trajectory = await run.trajectory();
    const state = await run.state();
    expect(trajectory).toMatchObject({
      format: 1,
      identity: state.identity,
      query: 'q',
      hints: { maxParallel: 4 },
      steps: [{ index: 0 }, { index: 1 }, { index: 2 }],
      steering: [{ kind: 'USER_MESSAGE', payload: { message: 'And quickly.' }, atStep: 3 }],
      background: { g: { members: [{ end: { status: 'complete', result: 'task' } }] } },
      resume: { payload: { message: 'Go.' }, token: expect.stringMatching(/^pause_/) },
      ending: { kind: 'finished', payload: 'done' },
    });
    const { artifactRef } = state.context.inputs?.[0] ?? {};
    expect(trajectory.sources).toEqual([
      { kind: 'attachment', ref: artifactRef },
      { kind: 'retrieved', ref: 'retrieved' },
      { kind: 'skill', ref: 's' },
    ]);
    const outcome = state.steps[0]?.calls[0]?.outcome;
    const whole = outcome?.kind === 'value' ? outcome.artifact?.artifactRef : undefined;
    expect(Object.keys(trajectory.artifacts)).toEqual(['in.csv', 'out.csv', whole]);
    const resumed = (await journal.read(run.id)).find(({ kind }) => kind === 'resumed');
    expect(trajectory.resume?.resumedAt).toBe(resumed?.at);
  });

  it('TJ-15 is JSON: written, read and written again it is the same text, in any process', async () => {
    const { run, journal } = await played();
    const text = JSON.stringify(await run.trajectory());
    const read = readTrajectory(text);
    expect(JSON.stringify(read)).toBe(text);
    expect(Object.isFrozen(read.steps[0])).toBe(true);
    expect(JSON.stringify(trajectoryOf(await journal.read(run.id)))).toBe(text);
    // It tells as much as the events did.
    expect((await collect(run)).filter(({ type }) => type === 'planner.decision')).toHaveLength(read.steps.length + 1);
  });

  it('names two artifacts of one file name apart, and a fork by its run', async () => {
    let made = 0;
    const save = make('save', async (_, { saveArtifact }) => {
      made += 1;
      const { artifactRef } = await saveArtifact(`${made}`, { mime: 'text/plain', fileName: 'a.txt' });
      return artifactRef;
    });
    const scene = world({ planner: script(call('save'), call('save')), tools: [save] });
    const run = await start(scene);
    await run.result();
    const { artifacts, steps } = await run.trajectory();
    const refs = steps.map(({ calls: [record] }) => (record?.outcome.kind === 'value' ? record.outcome.value : ''));
    expect(Object.entries(artifacts).map(([name, { artifactRef }]) => [name, artifactRef])).toEqual([
      ['a.txt', refs[0]],
      [refs[1], refs[1]],
    ]);
    const fork = await run.fork({ step: 1 });
    await fork.result();
    expect((await fork.trajectory()).sources).toContainEqual({ kind: 'fork', ref: run.id });
  });

  it('of a run that is under way has the steps that have ended, and no ending', async () => {
    const made = world({ planner: script({ kind: 'request_pause', reason: 'await_input' }) });
    const run = await start(made);
    await run.result();
    expect(await run.trajectory()).toMatchObject({ steps: [], ending: null });
  });

  it.each<[string, string, string]>([
    ['no JSON', '{', 'journal_corrupt'],
    ['a list', '[]', 'journal_corrupt'],
    ['another object', '{"steps":[]}', 'journal_corrupt'],
    ['a newer one', '{"format":2,"steps":[],"identity":{}}', 'journal_newer'],
  ])('cannot be read from %s', (_, text, code) => {
    expect(() => readTrajectory(text)).toThrow(expect.objectContaining({ code }));
  });
});
