/** Planners by name, for programs whose planner is named in a configuration. A value that its owner passes around. */
import { PilotageError, type Planner } from '#core';

/** What a configuration says of a planner beside the name of its driver. Nobody has checked it. */
export type DriverOptions = Readonly<Record<string, unknown>>;

/**
 * Makes a planner, with everything that it needs, or throws `invalid_config` naming the option that is wrong.
 * @param signal aborted when nobody waits for the planner any more.
 */
export type PlannerFactory = (options: DriverOptions, signal: AbortSignal) => Planner | Promise<Planner>;

export interface PlannerRegistry {
  /** @throws PilotageError `driver_empty_name`, `driver_nil_factory` or `driver_duplicate`. */
  register(name: string, factory: PlannerFactory): void;
  /** The names, sorted. */
  list(): readonly string[];
  /**
   * The very planner that the factory of this name makes.
   * @throws the signal's reason when it is aborted, PilotageError `driver_unknown`, or what the factory throws.
   */
  resolve(name: string, options?: DriverOptions, signal?: AbortSignal): Promise<Planner>;
}

/** A registry with nothing in it. */
export function plannerRegistry(): PlannerRegistry {
  const factories = new Map<string, PlannerFactory>();
  const list = (): readonly string[] => [...factories.keys()].sort();
  return Object.freeze({
    register(name: string, factory: PlannerFactory): void {
      if (typeof name !== 'string' || name.trim() === '') {
        throw new PilotageError('driver_empty_name', 'A planner driver was registered without a name. Give it one.');
      }
      const shown = JSON.stringify(name);
      if (typeof factory !== 'function') {
        throw new PilotageError('driver_nil_factory', `The planner driver ${shown} was registered without a factory.`);
      }
      if (factories.has(name)) {
        throw new PilotageError('driver_duplicate', `The planner driver ${shown} is registered already.`);
      }
      factories.set(name, factory);
    },
    list,
    async resolve(name: string, options: DriverOptions = {}, signal = new AbortController().signal): Promise<Planner> {
      signal.throwIfAborted();
      const factory = factories.get(name);
      if (factory !== undefined) return factory(options, signal);
      const what =
        name === '' ? 'The name of the planner driver is empty' : `There is no planner driver ${JSON.stringify(name)}`;
      throw new PilotageError('driver_unknown', `${what}; registered: ${list().join(', ') || '<none>'}.`);
    },
  });
}
