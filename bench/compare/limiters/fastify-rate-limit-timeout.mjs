// The same with ioredis' `commandTimeout`, which the README of @fastify/rate-limit does not mention. Without it a
// Redis that hangs is no error that `skipOnError` could skip.
import { createLimiter as create } from './fastify-rate-limit.mjs'

export const createLimiter = (options) => create({ ...options, commandTimeout: 500 })
