/** Types that several messages use. */

/** From most to least important: critical, high, normal, low. */
export type ByPriority = [number, number, number, number]

/** Longest text in characters; a longer one is cut and ends in an ellipsis. */
export type MostText = 200

/** Used as the lane in actions on all lanes. */
export type EveryLane = '(all lanes)'

/**
 * `memory`: state of this process only, by configuration. `starting`: no reply yet. `shared`: reachable.
 * `unreachable`: no reply. `untrusted`: reachable again, but not trusted for one window. `off`: switched off by
 * SPILLWAY_SHARED=off. With `unreachable`, `untrusted` and `off`, outage rules apply.
 */
export type StoreStatus = 'memory' | 'starting' | 'shared' | 'unreachable' | 'untrusted' | 'off'
