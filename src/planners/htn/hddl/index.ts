/** Reads HDDL: the typed subset in which subtasks are totally ordered. */
export { type HddlFiles, type HddlPlanning, readHddl } from './read.ts';
