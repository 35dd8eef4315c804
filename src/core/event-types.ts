/** The types of events, and which of them are recorded. */
import type { EventType } from './event.ts';
import type { OwnRemarkType } from './remark.ts';

/** Passing ones are told to those who read at the moment; everything else is in the journal, and can be read again. */
const TYPES: Readonly<Record<Exclude<EventType, OwnRemarkType>, 'recorded' | 'passing'>> = {
  'run.started': 'recorded',
  'run.erased': 'recorded',
  'turn.started': 'recorded',
  token: 'passing',
  'tool.input': 'passing',
  'token.reset': 'passing',
  'planner.decision': 'recorded',
  'planner.files': 'recorded',
  'tool.invoked': 'recorded',
  'tool.held_back': 'recorded',
  'tool.away': 'recorded',
  'tool.completed': 'recorded',
  'tool.failed': 'recorded',
  'tool.skipped': 'recorded',
  'handle.opened': 'recorded',
  'handle.lost': 'recorded',
  'tool.spent': 'recorded',
  'tool.late': 'passing',
  'tool.chunk': 'passing',
  'tool.approval_requested': 'recorded',
  'tool.approved': 'recorded',
  'tool.rejected': 'recorded',
  'approval.given': 'recorded',
  'approval.reminder': 'recorded',
  'approval.escalated': 'recorded',
  'rule.set': 'recorded',
  'rule.applied': 'recorded',
  message: 'recorded',
  'plan.grown': 'recorded',
  'task.spawned': 'recorded',
  'task.paused': 'recorded',
  'task.resumed': 'recorded',
  'task.completed': 'recorded',
  'task.failed': 'recorded',
  'task.cancelled': 'recorded',
  'task.group_resolved': 'recorded',
  'task.progress': 'passing',
  'planner.no_progress': 'recorded',
  'memory.recalled': 'recorded',
  'model.away': 'recorded',
  'run.reopened': 'recorded',
  'run.repaired': 'recorded',
  'planner.last_move': 'recorded',
  'undo.started': 'recorded',
  'undo.call': 'recorded',
  'undo.ended': 'recorded',
  'run.repinned': 'recorded',
  'run.paused': 'passing',
  'control.received': 'recorded',
  'provider.invoked': 'recorded',
  'provider.completed': 'recorded',
  'control.undelivered': 'recorded',
  'control.applied': 'recorded',
  'control.rejected': 'recorded',
  'call.waiting': 'recorded',
  'call.waited': 'recorded',
  'event.passed': 'recorded',
  'pause.requested': 'recorded',
  'pause.resumed': 'recorded',
  'trajectory.compressed': 'recorded',
  'trajectory.compression_failed': 'recorded',
  'trajectory.shortened': 'recorded',
  'model.overflowed': 'recorded',
  'planner.max_steps_exceeded': 'recorded',
  'planner.finish': 'recorded',
  'planner.error': 'recorded',
  'planner.repair_guidance_injected': 'recorded',
  'planner.repair_exhausted': 'recorded',
  'planner.action_extra_field_dropped': 'recorded',
  'planner.reply_repaired': 'recorded',
  'model.fallback': 'recorded',
  'model.output_downgraded': 'recorded',
  'model.usage_refused': 'recorded',
  'model.warned': 'recorded',
  'model.sources': 'recorded',
  'plan.retrieved': 'recorded',
  'plan.try': 'recorded',
  'plan.verified': 'recorded',
  'plan.fallback': 'recorded',
  'input.unreadable': 'recorded',
  'planner.remark_dropped': 'recorded',
};

const PASSING: ReadonlySet<string> = new Set(
  Object.entries(TYPES).flatMap(([type, kind]) => (kind === 'passing' ? [type] : [])),
);

/** Whether the event is read back from the journal. Others have the position of the last one that is. */
export function isRecorded({ type }: { readonly type: string }): boolean {
  return !PASSING.has(type);
}

/** Whether there are events of that type. A planner's own have a `/` in it. */
export function isEventType(type: string): boolean {
  return Object.hasOwn(TYPES, type) || type.includes('/');
}
