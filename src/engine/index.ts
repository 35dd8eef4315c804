/** `pilotage/engine`: the port to what keeps runs moving over many machines. Whoever uses an engine finds its driver at a subpath of that name. */
export type { Advance, Advanced, Driver } from '#runtime';
