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

/** NODE_OPTIONS of a process where it is not installed. */
export function withoutPackageFlags(name: string): string {
  const program = `import { registerHooks } from 'node:module';
registerHooks({ resolve: (specifier, context, next) => next(specifier === '${name}' ? '${name}-is-not-installed' : specifier, context) });`;
  return `--import=data:text/javascript;base64,${Buffer.from(program).toString('base64')}`;
}
