/** What both logistics domains look up: where things are, and which truck or plane is to carry them. */
import type { HtnState } from '#planners/htn';

export function placeOf(state: HtnState, table: 'at' | 'truck_at' | 'plane_at', thing: string): string {
  const place = state.get(table, thing);
  return typeof place === 'string' ? place : '';
}

/** Undefined for what is no location. */
export function cityOf(state: HtnState, location: string): string | undefined {
  const city = state.get('in_city', location);
  return typeof city === 'string' ? city : undefined;
}

export function isOne(state: HtnState, set: 'trucks' | 'airplanes' | 'airports' | 'locations', name: string): boolean {
  return state.table(set).has(name);
}

export function truckIn(state: HtnState, city: string): string | undefined {
  return state.table('trucks').find((truck) => cityOf(state, placeOf(state, 'truck_at', truck)) === city);
}

/** The first plane in that city, else the last of all. */
export function planeFor(state: HtnState, city: string): string | undefined {
  let last: string | undefined;
  const there = state.table('airplanes').find((plane) => {
    last = plane;
    return cityOf(state, placeOf(state, 'plane_at', plane)) === city;
  });
  return there ?? last;
}

export function airportOf(state: HtnState, city: string): string | undefined {
  return state.table('airports').find((airport) => cityOf(state, airport) === city);
}
