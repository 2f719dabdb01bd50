/** Limits, breakers and job queues on the memory store, in virtual time. The same claims run on Redis. */
import { claimBreakers } from './breaker-claims/all.js'
import { claimLimits } from './limit-claims/all.js'
import { createMemoryFleet } from './limit-claims/memory-fleet.js'
import { claimQueues } from './queue-claims/all.js'

claimLimits(createMemoryFleet())
claimBreakers(createMemoryFleet())
claimQueues(createMemoryFleet())
