/** The same logistics planned by tasks alone. */
import { type HtnDomain, type HtnState, type HtnTask, htnDomain } from '#planners/htn';
import { airportOf, cityOf, isOne, placeOf, planeFor, truckIn } from './logistics-map.ts';

export const logisticsHtn: HtnDomain = htnDomain({
  operators: {
    drive_truck: (state: HtnState, truck: string, to: string) => put(state, 'truck_at', truck, to),
    load_truck: (state: HtnState, o: string, truck: string) =>
      placeOf(state, 'at', o) === placeOf(state, 'truck_at', truck) && put(state, 'at', o, truck),
    unload_truck: (state: HtnState, o: string, to: string) => {
      const truck = placeOf(state, 'at', o);
      return isOne(state, 'trucks', truck) && placeOf(state, 'truck_at', truck) === to && put(state, 'at', o, to);
    },
    fly_plane: (state: HtnState, plane: string, to: string) => put(state, 'plane_at', plane, to),
    load_plane: (state: HtnState, o: string, plane: string) =>
      placeOf(state, 'at', o) === placeOf(state, 'plane_at', plane) && put(state, 'at', o, plane),
    unload_plane: (state: HtnState, o: string, to: string) => {
      const plane = placeOf(state, 'at', o);
      return isOne(state, 'airplanes', plane) && placeOf(state, 'plane_at', plane) === to && put(state, 'at', o, to);
    },
  },
  tasks: {
    deliver: { there, withinCity, betweenAirports, betweenCities },
    bring_truck: {
      there: (state: HtnState, truck: string, to: string) =>
        placeOf(state, 'truck_at', truck) === to ? [] : undefined,
      drive: (state: HtnState, truck: string, to: string) =>
        cityOf(state, placeOf(state, 'truck_at', truck)) === cityOf(state, to)
          ? [['drive_truck', truck, to]]
          : undefined,
    },
    bring_plane: {
      there: (state: HtnState, plane: string, to: string) =>
        placeOf(state, 'plane_at', plane) === to ? [] : undefined,
      fly: (_state: HtnState, plane: string, to: string) => [['fly_plane', plane, to]],
    },
  },
});

function put(state: HtnState, table: string, key: string, value: string): true {
  state.set(table, key, value);
  return true;
}

function there(state: HtnState, o: string, to: string): HtnTask[] | undefined {
  return placeOf(state, 'at', o) === to ? [] : undefined;
}

function withinCity(state: HtnState, o: string, to: string): HtnTask[] | undefined {
  const from = placeOf(state, 'at', o);
  const city = cityOf(state, from);
  if (city === undefined || city !== cityOf(state, to)) return undefined;
  const truck = truckIn(state, city);
  if (truck === undefined) return undefined;
  return [
    ['bring_truck', truck, from],
    ['load_truck', o, truck],
    ['bring_truck', truck, to],
    ['unload_truck', o, to],
  ];
}

function betweenAirports(state: HtnState, o: string, to: string): HtnTask[] | undefined {
  const from = placeOf(state, 'at', o);
  const city = cityOf(state, from);
  if (!isOne(state, 'airports', from) || !isOne(state, 'airports', to)) return undefined;
  if (city === undefined || city === cityOf(state, to)) return undefined;
  const plane = planeFor(state, city);
  if (plane === undefined) return undefined;
  return [
    ['bring_plane', plane, from],
    ['load_plane', o, plane],
    ['bring_plane', plane, to],
    ['unload_plane', o, to],
  ];
}

function betweenCities(state: HtnState, o: string, to: string): HtnTask[] | undefined {
  const from = cityOf(state, placeOf(state, 'at', o));
  const city = cityOf(state, to);
  if (from === undefined || city === undefined || from === city) return undefined;
  const departure = airportOf(state, from);
  const arrival = airportOf(state, city);
  if (departure === undefined || arrival === undefined) return undefined;
  return [
    ['deliver', o, departure],
    ['deliver', o, arrival],
    ['deliver', o, to],
  ];
}
