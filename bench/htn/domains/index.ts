/** The domains by the names that problem files give them. */
import type { HtnDomain } from '#planners/htn';
import { backtracking } from './backtracking.ts';
import { blocks } from './blocks.ts';
import { choice } from './choice.ts';
import { hanoi } from './hanoi.ts';
import { logisticsHgn } from './logistics-hgn.ts';
import { logisticsHtn } from './logistics-htn.ts';
import { travel } from './travel.ts';

export interface BenchDomain {
  readonly domain: HtnDomain;
  /** The items of `todo` are goals. */
  readonly goals?: true;
}

export const DOMAINS: Readonly<Record<string, BenchDomain>> = {
  blocks_htn: { domain: blocks },
  logistics_hgn: { domain: logisticsHgn, goals: true },
  logistics_htn: { domain: logisticsHtn },
  hanoi_htn: { domain: hanoi },
  choice_htn: { domain: choice },
  simple_htn: { domain: travel },
  backtracking_htn: { domain: backtracking },
};
