// docs/how-to/mechanisms/circuit-breaker.md
import { createBreaker as create } from './spillway-consecutive.mjs'

export const createBreaker = (options) =>
  create({ ...options, breaker: { failureRate: 0.5, windowMs: '10s', minimumCalls: 5 } })
