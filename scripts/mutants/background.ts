/** Faults in calls that are made in the background. */
import type { Mutant } from './mutant.ts';

export const BACKGROUND: readonly Mutant[] = [
  {
    name: 'back: lose the news of what tasks came to',
    file: 'state/task-state.ts',
    find: 'if (group !== undefined) state.background = pushed(',
    replace:
      "if (group !== undefined && !group.members.some((task) => task.description.startsWith('back_'))) state.background = pushed(",
  },
  {
    name: 'back: tell news twice',
    file: 'state/task-state.ts',
    find: 'state.background = pushed(state.background, deepFreeze({ atStep: nextStep(state), group }));',
    replace:
      'for (const _ of [0, 1]) state.background = pushed(state.background, deepFreeze({ atStep: nextStep(state), group }));',
  },
  {
    name: 'back: make the call again without doubt when its process has died',
    file: 'tools/background.ts',
    find: 'const own = { ...rest, execute:',
    replace: "const own = { ...rest, effect: 'read' as const, execute:",
  },
  {
    name: 'back: leave tasks running when their run is cancelled',
    file: 'tasks/spawn.ts',
    find: "const about = { kind, description: tool, group, onCancel: 'cascade' } as const;",
    replace: "const about = { kind, description: tool, group, onCancel: background ? 'isolate' : 'cascade' } as const;",
  },
  {
    name: 'back: end with nothing in place of the value',
    file: 'tools/background.ts',
    find: "return { kind: 'finish', reason: 'goal', payload: outcome.value };",
    replace: "return { kind: 'finish', reason: 'goal' };",
  },
  {
    name: 'back: end well when the call has failed',
    file: 'tools/background.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the source.
    find: "throw new PilotageError('call_failed', `The call of ${tool} has failed: ${why}`, { data });",
    replace: "return { kind: 'finish', reason: 'goal', payload: why, metadata: { data: data ?? null } };",
  },
  {
    name: 'back: make the call once more when it has no value',
    file: 'tools/background.ts',
    find: 'if (trajectory.count === 0) return',
    replace:
      "if (trajectory.count === 0 || (trajectory.count === 1 && trajectory.step(0)?.calls[0]?.outcome.kind !== 'value')) return",
  },
  {
    name: 'back: do not wake a planner that waits for news',
    file: 'loop/next.ts',
    find: 'const result = background.find(({ atStep }) => atStep === step + 1);',
    replace: 'const result = background.find(({ atStep }) => atStep === step + 1_000);',
  },
  {
    name: 'back: say the id of another task',
    file: 'tasks/spawn.ts',
    find: 'value: { task: run.identity.run } };',
    replace: 'value: { task: state.identity.run } };',
  },
  {
    name: 'back: take an approval for granted',
    file: 'tools/background.ts',
    find: 'const { background: _, ...rest } = tool;',
    replace: 'const { background: _, needsApproval: __, ...rest } = tool;',
  },
];
