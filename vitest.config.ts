import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { CountLine } from './scripts/count-line.ts';

/** Tests that play for a long time, start many processes or kill them: `npm run soak`. */
const SOAK = 'test/**/*.soak.test.ts';
/** They are fast in memory, and are played once more on a disk. */
const ON_DISK = 'test/journal/*.test.ts';
const shared = {
  environment: 'node',
  // Tests kill processes and change folders, which threads cannot.
  pool: 'forks',
  // What a test has put in the place of something is taken away again also when the test has failed.
  restoreMocks: true,
  unstubEnvs: true,
  // Crash suites start hundreds of processes.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Node loads the tests and the sources as it does for a user. Nothing is mocked that would need a loader.
  experimental: { viteModuleRunner: false, nodeLoader: false },
} as const;

const config: ViteUserConfig = defineConfig({
  test: {
    globalSetup: 'test/kit/build.ts',
    reporters: ['default', new CountLine()],
    projects: [
      {
        test: {
          ...shared,
          name: 'fast',
          // One more than the cores: there is always one that waits for a process or a clock.
          maxWorkers: 3,
          // The soak tests keep to the disk.
          globalSetup: 'test/kit/memory-disk.ts',
          // A worker loads the sources once, not once for each of its files.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [SOAK],
          // What the types promise is tested too. The types of everything else are the compiler's own stage.
          typecheck: {
            enabled: true,
            include: ['test/**/*.test-d.ts'],
            tsconfig: 'test/types.tsconfig.json',
            ignoreSourceErrors: true,
          },
        },
      },
      { test: { ...shared, name: 'soak', maxWorkers: 2, sequence: { groupOrder: 1 }, include: [SOAK, ON_DISK] } },
    ],
  },
});
export default config;
