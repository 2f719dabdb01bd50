// Like fastify-rate-limit.mjs, with ioredis' `commandTimeout`, which the README of @fastify/rate-limit does not
// mention. Without it a Redis that hangs causes no error, so `skipOnError` has no effect.
import { createLimiter as create } from './fastify-rate-limit.mjs'

export const createLimiter = (options) => create({ ...options, commandTimeout: 500 })
