/** Somebody walks, or takes a taxi that can be paid for. */
import { type HtnDomain, type HtnState, type HtnTask, htnDomain } from '#planners/htn';

const PEOPLE = new Set(['alice', 'bob']);
const PLACES = new Set(['home_a', 'home_b', 'park', 'station']);
const TAXIS = new Set(['taxi1', 'taxi2']);
const DISTANCES = new Map([
  ['home_a park', 8],
  ['home_b park', 2],
  ['station home_a', 1],
  ['station home_b', 7],
  ['home_a home_b', 7],
  ['station park', 9],
]);
const WALKED = 2;

export const travel: HtnDomain = htnDomain({
  operators: { walk, call_taxi: callTaxi, ride_taxi: rideTaxi, pay_driver: payDriver },
  tasks: { travel: { stay, byFoot, byTaxi } },
});

function distance(from: string, to: string): number {
  return DISTANCES.get(`${from} ${to}`) ?? DISTANCES.get(`${to} ${from}`) ?? Number.POSITIVE_INFINITY;
}

function fare(from: string, to: string): number {
  return 1.5 + 0.5 * distance(from, to);
}

function locOf(state: HtnState, thing: string): string {
  return String(state.get('loc', thing));
}

function walk(state: HtnState, person: string, from: string, to: string): boolean {
  if (!PEOPLE.has(person) || !PLACES.has(from) || !PLACES.has(to) || from === to) return false;
  if (locOf(state, person) !== from) return false;
  state.set('loc', person, to);
  return true;
}

function callTaxi(state: HtnState, person: string, place: string): boolean {
  if (!PEOPLE.has(person) || !PLACES.has(place)) return false;
  state.set('loc', 'taxi1', place);
  state.set('loc', person, 'taxi1');
  return true;
}

function rideTaxi(state: HtnState, person: string, to: string): boolean {
  const taxi = locOf(state, person);
  const from = locOf(state, taxi);
  if (!PEOPLE.has(person) || !TAXIS.has(taxi) || !PLACES.has(from) || !PLACES.has(to) || from === to) return false;
  state.set('loc', taxi, to);
  state.set('owe', person, fare(from, to));
  return true;
}

function payDriver(state: HtnState, person: string, place: string): boolean {
  const left = Number(state.get('cash', person)) - Number(state.get('owe', person));
  if (!PEOPLE.has(person) || !(left >= 0)) return false;
  state.set('cash', person, left);
  state.set('owe', person, 0);
  state.set('loc', person, place);
  return true;
}

function stay(state: HtnState, person: string, to: string): HtnTask[] | undefined {
  return locOf(state, person) === to ? [] : undefined;
}

function byFoot(state: HtnState, person: string, to: string): HtnTask[] | undefined {
  const from = locOf(state, person);
  return distance(from, to) <= WALKED ? [['walk', person, from, to]] : undefined;
}

function byTaxi(state: HtnState, person: string, to: string): HtnTask[] | undefined {
  const from = locOf(state, person);
  if (!(Number(state.get('cash', person)) >= fare(from, to))) return undefined;
  return [
    ['call_taxi', person, from],
    ['ride_taxi', person, to],
    ['pay_driver', person, to],
  ];
}
