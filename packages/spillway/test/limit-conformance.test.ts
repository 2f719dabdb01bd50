/**
 * Claims about the shared rate limiter, with the memory store and one Redis server; see also
 * `topologies/`.
 */
import { claimLimits } from './limit-claims/all.js'
import { createMemoryFleet, createRedisFleet } from './limit-claims/fleet.js'

claimLimits(createMemoryFleet())
claimLimits(createRedisFleet())
