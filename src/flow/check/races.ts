/** What a race asks of its branches. Each branch is checked by itself too, as a node is. */
import { MAX_AT_ONCE } from '#core';
import type { GraphNode } from '../graph.ts';
import { type FlowFault, faultOf, listedNames, notANode } from './fault.ts';
import { isNode } from './sketch.ts';

/** @param nodes the nodes of the flow. */
export function raceFaults(race: GraphNode, nodes: ReadonlyMap<string, GraphNode>): FlowFault[] {
  const { name, branches = [] } = race;
  const given: readonly unknown[] = branches;
  const others = given.filter((branch) => !isNode(branch));
  const real = branches.filter(isNode);
  const twice = Map.groupBy(real, (branch) => branch.name);
  return [
    ...countFaults(race),
    ...others.map((other) => faultOf('not_a_node', notANode(other, `A branch of the race ${name}`), [name])),
    ...[...twice].flatMap(([branch, { length }]) => {
      const message = `The race ${name} has ${length} branches named ${branch}. Give each a name of its own.`;
      return length === 1 ? [] : [faultOf('duplicate_name', message, [name, branch])];
    }),
    ...real.flatMap((branch) => branchFaults(name, branch, nodes)),
  ];
}

function countFaults({ name, branches = [], need = 1 }: GraphNode): FlowFault[] {
  const { length } = branches;
  if (length === 0) {
    return [
      faultOf('no_branches', `The race ${name} has no branches. Name the nodes that run at once: of: [a, b].`, [name]),
    ];
  }
  if (length > MAX_AT_ONCE) {
    const message = `The race ${name} has ${length} branches; at most ${MAX_AT_ONCE} run at once. Take some out.`;
    return [faultOf('too_many_branches', message, [name])];
  }
  if (Number.isInteger(need) && need >= 1 && need <= length) return [];
  const message = `The race ${name} has need: ${JSON.stringify(need)}; give a whole number from 1 to ${length}, the number of its branches, or leave it out.`;
  return [faultOf('bad_need', message, [name])];
}

function branchFaults(race: string, branch: GraphNode, nodes: ReadonlyMap<string, GraphNode>): FlowFault[] {
  const { name, kind } = branch;
  const faults: FlowFault[] = [];
  const add = (message: string): void => {
    faults.push(faultOf('bad_branch', message, [race, name]));
  };
  if (kind === 'router' || kind === 'join') {
    add(
      `The ${kind} ${name} is a branch of the race ${race}. A branch gives a value of its own input: put the ${kind} into a flow, and name that (asNode).`,
    );
  }
  const ways = (['onError', 'onRejected'] as const).filter((way) => branch[way] !== undefined);
  if (ways.length > 0) {
    add(
      `The branch ${name} of the race ${race} has ${listedNames(ways)}. A branch that fails is out of the race, and leads nowhere: give that to the race.`,
    );
  }
  if (nodes.get(name) === branch) {
    add(
      `The node ${name} is a branch of the race ${race}, and stands in the flow too. Lead to the race and on from it: a unionRouter over branch goes by who has won.`,
    );
  }
  return faults;
}
