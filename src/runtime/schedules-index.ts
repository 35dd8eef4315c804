/** `pilotage/schedules`: what `runtime.schedules` takes and gives. */
export {
  OVERLAP_MODES,
  type OverlapMode,
  type ScheduleOptions,
  type ScheduleRecord,
} from './schedule-definition.ts';
export { CATCH_UP_MODES, type CatchUp } from './schedule-times.ts';
export type { OfTenant, ScheduleListOptions, Schedules } from './schedules.ts';
