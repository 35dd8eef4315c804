/** Packages, trucks and planes, planned by goals: `at`, `truck_at` and `plane_at` are to have a value. */
import { type HtnDomain, type HtnState, type HtnTask, htnDomain } from '#planners/htn';
import { airportOf, cityOf, isOne, placeOf, planeFor, truckIn } from './logistics-map.ts';

type Carry = (state: HtnState, o: string, to: string) => HtnTask[] | undefined;

export const logisticsHgn: HtnDomain = htnDomain({
  operators: {
    drive_truck: (state: HtnState, truck: string, to: string) => put(state, 'truck_at', truck, to),
    load_truck: (state: HtnState, o: string, truck: string) => put(state, 'at', o, truck),
    unload_truck: (state: HtnState, o: string, to: string) =>
      placeOf(state, 'truck_at', placeOf(state, 'at', o)) === to && put(state, 'at', o, to),
    fly_plane: (state: HtnState, plane: string, to: string) => put(state, 'plane_at', plane, to),
    load_plane: (state: HtnState, o: string, plane: string) => put(state, 'at', o, plane),
    unload_plane: (state: HtnState, o: string, to: string) =>
      placeOf(state, 'plane_at', placeOf(state, 'at', o)) === to && put(state, 'at', o, to),
  },
  goals: {
    at: { loadTruck, unloadTruck, loadPlane, unloadPlane, withinCity, betweenAirports, betweenCities },
    truck_at: (state: HtnState, truck: string, to: string) =>
      cityOf(state, placeOf(state, 'truck_at', truck)) === cityOf(state, to) ? [['drive_truck', truck, to]] : undefined,
    plane_at: (_state: HtnState, plane: string, to: string) => [['fly_plane', plane, to]],
  },
});

function put(state: HtnState, table: string, key: string, value: string): true {
  state.set(table, key, value);
  return true;
}

function loadTruck(state: HtnState, o: string, truck: string): ReturnType<Carry> {
  if (!isOne(state, 'trucks', truck)) return undefined;
  return placeOf(state, 'at', o) === placeOf(state, 'truck_at', truck) ? [['load_truck', o, truck]] : undefined;
}

function unloadTruck(state: HtnState, o: string, to: string): ReturnType<Carry> {
  const inTruck = isOne(state, 'trucks', placeOf(state, 'at', o));
  return inTruck && isOne(state, 'locations', to) ? [['unload_truck', o, to]] : undefined;
}

function loadPlane(state: HtnState, o: string, plane: string): ReturnType<Carry> {
  if (!isOne(state, 'airplanes', plane)) return undefined;
  return placeOf(state, 'at', o) === placeOf(state, 'plane_at', plane) ? [['load_plane', o, plane]] : undefined;
}

function unloadPlane(state: HtnState, o: string, to: string): ReturnType<Carry> {
  const inPlane = isOne(state, 'airplanes', placeOf(state, 'at', o));
  return inPlane && isOne(state, 'airports', to) ? [['unload_plane', o, to]] : undefined;
}

function withinCity(state: HtnState, o: string, to: string): ReturnType<Carry> {
  const from = placeOf(state, 'at', o);
  const city = cityOf(state, from);
  if (city === undefined || city !== cityOf(state, to)) return undefined;
  const truck = truckIn(state, city);
  if (truck === undefined) return undefined;
  return [
    ['goal', 'truck_at', truck, from],
    ['goal', 'at', o, truck],
    ['goal', 'truck_at', truck, to],
    ['goal', 'at', o, to],
  ];
}

function betweenAirports(state: HtnState, o: string, to: string): ReturnType<Carry> {
  const from = placeOf(state, 'at', o);
  const city = cityOf(state, from);
  if (!isOne(state, 'airports', from) || !isOne(state, 'airports', to)) return undefined;
  if (city === undefined || city === cityOf(state, to)) return undefined;
  const plane = planeFor(state, city);
  if (plane === undefined) return undefined;
  return [
    ['goal', 'plane_at', plane, from],
    ['goal', 'at', o, plane],
    ['goal', 'plane_at', plane, to],
    ['goal', 'at', o, to],
  ];
}

function betweenCities(state: HtnState, o: string, to: string): ReturnType<Carry> {
  const from = cityOf(state, placeOf(state, 'at', o));
  const city = cityOf(state, to);
  if (from === undefined || city === undefined || from === city) return undefined;
  const departure = airportOf(state, from);
  const arrival = airportOf(state, city);
  if (departure === undefined || arrival === undefined) return undefined;
  return [
    ['goal', 'at', o, departure],
    ['goal', 'at', o, arrival],
    ['goal', 'at', o, to],
  ];
}
