/** Words and numbers that several messages have. */

/** From the most important down: critical, high, normal, low. */
export type ByPriority = [number, number, number, number]

/** So many characters of any text, the last one an ellipsis if there were more. */
export type MostText = 200

/** In place of a lane's name: what holds for all lanes. An act on it is one on all lanes. */
export type EveryLane = '(all lanes)'

/**
 * `memory`: for this process alone, by choice; `starting`: not heard of yet; `shared`: it answers; `away`: it does
 * not; `apart`: it is back, and not trusted for a window; `off`: switched off by SPILLWAY_SHARED=off. Of `away`,
 * `apart` and `off` outage rules are in force: degraded.
 */
export type StoreWord = 'memory' | 'starting' | 'shared' | 'away' | 'apart' | 'off'
