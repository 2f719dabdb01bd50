/**
 * Claims about the shared circuit breaker, with the memory store and one Redis server; see also
 * `topologies/`.
 */
import { claimBreakers } from './breaker-claims/all.js'
import { createMemoryFleet, createRedisFleet } from './limit-claims/fleet.js'

claimBreakers(createMemoryFleet())
claimBreakers(createRedisFleet())
