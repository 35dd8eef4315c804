import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';

const cwd = dirname(dirname(import.meta.dirname));

function run(script: string, ...args: string[]): { status: number | null; lines: string[] } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`scripts/${script}.ts`, ...args], {
    cwd,
    encoding: 'utf8',
  });
  return { status, lines: `${stdout}${stderr}`.trimEnd().split('\n') };
}

describe('npm run simulate', () => {
  it('plays so many seeds and ends with one line of JSON', () => {
    expect(run('simulate', '--seeds', '30', '--from', '7')).toEqual({
      status: 0,
      lines: ['{"seeds":30,"violations":0}'],
    });
  });

  it('refuses a count that is none', () => {
    const { status, lines } = run('simulate', '--seeds', '0');
    expect(status).toBe(1);
    expect(lines.join('\n')).toContain('--seeds must be a whole number from 1 up');
  });
});

describe('npm run simulate:mutants', () => {
  it('catches a wake that is delivered twice', () => {
    const { status, lines } = run('simulate-mutants', '--only', 'deliver a wake twice');
    expect(status).toBe(0);
    expect(lines.at(-1)).toBe('{"mutants":1,"caught":1}');
  });

  it('says when nothing notices a fault', () => {
    const { status, lines } = run('simulate-mutants', '--only', 'run a once call again', '--seeds', '1');
    expect(status).toBe(1);
    expect(lines).toEqual(['NOT CAUGHT: run a once call again after a crash', '{"mutants":1,"caught":0}']);
  });
});
