/** Types that several messages use. */

/** From the most important to the least: critical, high, normal, low. */
export type ByPriority = [number, number, number, number]

/** Longest text in characters; a longer one is cut and ends in an ellipsis. */
export type MostText = 200

/** In place of a lane's name: all lanes. An action on it applies to all lanes. */
export type EveryLane = '(all lanes)'

/**
 * `memory`: for this process alone, by choice. `starting`: no reply yet. `shared`: reachable.
 * `unreachable`: unreachable. `untrusted`: reachable again, and not trusted for a window. `off`: switched off
 * by SPILLWAY_SHARED=off. With `unreachable`, `untrusted` and `off`, outage rules apply.
 */
export type StoreWord = 'memory' | 'starting' | 'shared' | 'unreachable' | 'untrusted' | 'off'
