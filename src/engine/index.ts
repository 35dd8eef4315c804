/**
 * `pilotage/engine`: the port to what keeps runs moving over many machines, and what `runtime.advance` takes and says. Whoever uses an engine finds its
 * driver at a subpath of that name.
 */
export type {
  Advance,
  AdvanceDueOptions,
  Advanced,
  AdvancedRun,
  AdvancedRuns,
  AdvanceOptions,
  Driver,
} from '#runtime';
