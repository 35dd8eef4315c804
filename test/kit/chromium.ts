/** A real Chromium without a window: the program `chromium` of this machine. */
import { execFileSync } from 'node:child_process';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Where it is; `undefined` where it is not installed, which is said once. */
export const chromiumPath: string | undefined = findChromium();

function findChromium(): string | undefined {
  try {
    return execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();
  } catch {
    process.stderr.write(
      'Tests in a browser are skipped: there is no program `chromium` (Debian: apt-get install chromium).\n',
    );
    return undefined;
  }
}

/** @throws Error where it is not installed. */
export function launchChromium(): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error('There is no program `chromium`.');
  // Its sandbox cannot be had by root, nor in most containers.
  return chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** A page of a visitor of its own. `faults` is what its scripts have thrown and nobody has caught. */
export async function openPage(browser: Browser, url: string): Promise<{ page: Page; faults: readonly Error[] }> {
  const page = await browser.newPage();
  // What never comes is found by the test's time limit.
  page.setDefaultTimeout(0);
  const faults: Error[] = [];
  page.on('pageerror', (error) => faults.push(error));
  await page.goto(url);
  return { page, faults };
}
