import { tmpdir } from 'node:os';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { CountLine } from './scripts/count-line.ts';

/** Tests that play for a long time, start many processes or kill them: `npm run soak`. */
const SOAK = 'test/**/*.soak.test.ts';
/** Those of journals in files are played on a disk too: what is in memory for the others is not. */
const ON_DISK = ['test/journal/*.test.ts', 'test/crash/{sigkill,flow-sigkill,leaving}.soak.test.ts'];
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
          globalSetup: 'test/kit/memory-disk.ts',
          // A worker loads the sources once, not once for each of its files.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [SOAK],
          // What the types promise is tested too, as most programs are compiled: without exact optional properties. All else is the compiler's own stage.
          typecheck: {
            enabled: true,
            include: ['test/**/*.test-d.ts'],
            tsconfig: 'test/types.tsconfig.json',
            ignoreSourceErrors: true,
          },
        },
      },
      {
        test: {
          ...shared,
          name: 'soak',
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
          globalSetup: 'test/kit/memory-disk.ts',
          include: [SOAK],
          exclude: ON_DISK,
        },
      },
      {
        test: {
          ...shared,
          name: 'disk',
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
          // The folder that is there before others have one in memory.
          env: { TMPDIR: tmpdir() },
          include: ON_DISK,
        },
      },
    ],
  },
});
export default config;
