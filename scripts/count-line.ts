import type { Reporter, TestModule } from 'vitest/node';

/** Ends a run of the tests with one plain line: `N passed, N failed`. */
export class CountLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    // An error outside of every test has failed something too.
    const counts = { passed: 0, failed: unhandledErrors.length };
    for (const module of modules) {
      let tests = 0;
      for (const test of module.children.allTests()) {
        tests += 1;
        const { state } = test.result();
        if (state === 'passed' || state === 'failed') counts[state] += 1;
      }
      // A file that could not be loaded holds no test that failed.
      if (tests === 0 && module.state() === 'failed') counts.failed += 1;
    }
    console.log(`${counts.passed} passed, ${counts.failed} failed`);
  }
}
