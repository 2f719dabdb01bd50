import { arrayOf, integer, object, optional, text } from 'spillway/options'
import { flag, recordOf } from './checks.js'
import { type MockKnobs, readKnobs } from './knobs.js'
import { type MockLimit, readLimit } from './limits.js'

/** Plain data, so that it fits into a file. */
export interface MockVendorOptions {
  /** Default: `127.0.0.1`. */
  host?: string | undefined
  /** Default: 0, any free port. */
  port?: number | undefined
  /** Seed of its randomness. Default: 1. */
  seed?: number | undefined
  /** Limits for each API key and model separately; refused requests do not count. Default: none. */
  limits?: readonly MockLimit[] | undefined
  /** Responds with 401 to any other API key. Default: accepts any key, or none. */
  keys?: readonly string[] | undefined
  /** For every request. */
  knobs?: MockKnobs | undefined
  /** By model. Models that are not listed are answered as well. */
  models?: Readonly<Record<string, MockKnobs>> | undefined
  /** How many calls are recorded individually, the newest. Default: 10,000. */
  maxCalls?: number | undefined
  /** Lets the process end although the vendor is running. Default: false. */
  unref?: boolean | undefined
}

export const readOptions = object({
  host: optional(text(), '127.0.0.1'),
  port: optional(integer({ min: 0, max: 65_535 }), 0),
  seed: optional(integer({ min: -(2 ** 53), max: 2 ** 53 }), 1),
  limits: optional(arrayOf(readLimit), []),
  keys: optional(arrayOf(text())),
  knobs: optional(readKnobs, {} as ReturnType<typeof readKnobs>),
  models: recordOf(readKnobs),
  maxCalls: optional(integer({ min: 0 }), 10_000),
  unref: optional(flag, false),
})

export type Options = ReturnType<typeof readOptions>
