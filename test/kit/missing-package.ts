/** What happens where an optional package is not installed. */
import { registerHooks } from 'node:module';

export function withoutPackage<T>(name: string, attempt: () => T): T {
  const hooks = registerHooks({
    resolve: (specifier, context, next) => next(specifier === name ? `${name}-is-not-installed` : specifier, context),
  });
  try {
    return attempt();
  } finally {
    hooks.deregister();
  }
}
