import { defineConfig, type ViteUserConfig } from 'vitest/config';

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Tests kill processes and change folders: each file has a process of its own.
    pool: 'forks',
    maxWorkers: 2,
    // Crash suites start hundreds of processes.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // What the types promise is tested too. The types of everything else are the compiler's own stage.
    typecheck: { enabled: true, include: ['test/**/*.test-d.ts'], ignoreSourceErrors: true },
  },
});
export default config;
