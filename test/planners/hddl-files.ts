/** The domains of hddl-domains, read and planned. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findPlan, type HtnResult } from '#planners/htn';
import { type HddlPlanning, readHddl } from '#planners/htn/hddl';

const FOLDER = new URL('./hddl-domains/', import.meta.url);

export function domainNames(): string[] {
  return readdirSync(fileURLToPath(FOLDER))
    .filter((name) => name.endsWith('.domain.hddl'))
    .map((name) => name.replace('.domain.hddl', ''));
}

export function texts(name: string): { readonly domain: string; readonly problem: string } {
  const read = (kind: string): string => readFileSync(new URL(`${name}.${kind}.hddl`, FOLDER), 'utf8');
  return { domain: read('domain'), problem: read('problem') };
}

/** More nodes than any of these needs: an endless search fails. */
const MAX_NODES = 200_000;

export function planFor({ domain, state, todo }: HddlPlanning): HtnResult {
  return findPlan(domain, state, todo, { nodes: MAX_NODES });
}

/** `action object …` for each action; undefined where there is no plan. */
export function planned(domain: string, problem: string): string[] | undefined {
  return planFor(readHddl(domain, problem)).actions?.map((action) => action.join(' '));
}

export function split(plan: readonly string[]): string[][] {
  return plan.map((action) => action.split(' '));
}
