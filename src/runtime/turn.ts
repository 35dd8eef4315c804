/** Lets the event loop go round once: timers, signals and other runs have their turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
