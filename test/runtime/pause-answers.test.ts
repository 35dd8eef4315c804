import { describe, expect, it } from 'vitest';
import { pause, script } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

describe('a call whose approval expires while another is at work', () => {
  it('SP-44, PX-20 has its refusal, and the other goes on to its end', async () => {
    const slow = gate();
    const quick = gate();
    const tools = [
      make('gated', () => 'made', { needsApproval: { expiresInMs: 100 } }),
      make('slow', async (_, { signal }) => {
        await slow.opened;
        return signal.aborted ? 'aborted' : 'whole';
      }),
      make('quick', () => quick.opened.then(() => 'quick')),
    ];
    const branches = ['gated', 'slow', 'quick'].map((tool) => ({ tool, args: {} }));
    const made = world({ planner: script({ kind: 'call_parallel', branches }), tools });
    const run = await start(made);
    await until(async () => (await entriesOf(made.journal, run, 'paused')).length === 1);
    made.clock.advance(200);
    quick.open();
    await until(async () => (await entriesOf(made.journal, run, 'resumed')).length === 1);
    slow.open();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const [step] = (await run.state()).steps;
    expect(step?.calls.map(({ outcome }) => outcome)).toMatchObject([
      { kind: 'error', error: { code: 'approval_timeout' } },
      { kind: 'value', value: 'whole' },
      { kind: 'value', value: 'quick' },
    ]);
  });
});

describe('a pause', () => {
  it('SP-24 is answered by one of four words, and by nothing else', async () => {
    const made = world({ planner: script(pause, pause, pause, { ...pause, expiresInMs: 50 } as never) });
    const run = await start(made);
    const answers = [() => run.approve(), () => run.reject(), () => run.resume()];
    for (const answer of answers) {
      await run.result();
      await answer();
    }
    await run.result();
    await expect(run.steer('DECIDE' as never)).rejects.toMatchObject({ code: 'unknown_control_type' });
    made.clock.advance(60);
    await run.resume().catch((error: { code: string }) => expect(error.code).toBe('pause_expired'));
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const verdicts = (await entriesOf(made.journal, run, 'resumed')).map(({ verdict }) => verdict);
    expect(verdicts).toEqual(['approve', 'reject', 'resume', 'timeout']);
  });
});
