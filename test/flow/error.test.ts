/** From the end of a flow's run to the error of the one who called it. */
import { describe, expect, it } from 'vitest';
import { local, PilotageError } from '#core';
import { FlowError, flowError } from '#flow';

const identity = local('ana', { run: 'run_1' });

describe('flowError', () => {
  it('RT-18 carries identity, flow, node, code, attempts and cause; what the node says changes none of them', () => {
    const theirs = { identity: 'x', flow: 'x', node: 'x', code: 'x', attempts: 99, cause: 'x', name: 'x' };
    const cause = { code: 'tool_failed', message: 'No card.', data: theirs };
    const data = { flow: 'support', node: 'charge', attempts: 3, cause };
    const error = flowError(
      { status: 'failed', error: { code: 'node_exception', message: 'Step 0: it failed.', data } },
      identity,
      'support',
    );
    expect(error).toBeInstanceOf(FlowError);
    expect(PilotageError.is(error, 'node_exception')).toBe(true);
    expect(error).toMatchObject({ name: 'FlowError', identity, flow: 'support', node: 'charge', attempts: 3 });
    expect(error.cause).toMatchObject({ code: 'tool_failed', message: 'No card.', data: theirs });
  });

  it('RT-15 a run that was cancelled is run_cancelled', () => {
    const error = flowError({ status: 'finished', reason: 'cancelled' }, identity, 'support');
    expect(error).toMatchObject({ code: 'run_cancelled', flow: 'support', attempts: 0, node: undefined });
  });

  it.each([
    ['deadline_exceeded', 'deadline'],
    ['max_steps', 'steps'],
    ['max_cost', 'cost'],
    ['max_tokens', 'tokens'],
  ])('RT-28 a run that ended with %s is flow_budget_exceeded', (reason, axis) => {
    const error = flowError({ status: 'finished', reason }, identity, 'support');
    expect(error).toMatchObject({ code: 'flow_budget_exceeded', data: { flow: 'support', axis } });
  });

  it('an end that is no flow’s is given as it is', () => {
    const failed = { status: 'failed' as const, error: { code: 'planner_failed', message: 'It broke.' } };
    const error = flowError(failed, identity, 'support');
    expect(error).not.toBeInstanceOf(FlowError);
    expect(error).toMatchObject({ code: 'planner_failed', message: 'It broke.' });
  });

  it('a rejection that ends the run says so', () => {
    const error = flowError({ status: 'finished', reason: 'constraints_conflict' }, identity, 'support');
    expect(error).toMatchObject({ code: 'node_exception', message: expect.stringContaining('constraints_conflict') });
  });
});
