import { arrayOf, integer, object, optional, text } from 'spillway/options'
import { flag, recordOf } from './checks.js'
import { type MockKnobs, readKnobs } from './knobs.js'
import { type MockLimit, readLimit } from './limits.js'

/** Options of a mock vendor. Plain data, so that it fits into a file. */
export interface MockVendorOptions {
  /** Address to listen on. Default: `127.0.0.1`. */
  host?: string | undefined
  /** Port to listen on. Range: 0 to 65,535. Default: 0, any free port. */
  port?: number | undefined
  /** Seed of its random numbers. Range: any integer. Default: 1. */
  seed?: number | undefined
  /** Limits for each API key and model separately; refused requests do not count. Default: none. */
  limits?: readonly MockLimit[] | undefined
  /** Responds with 401 to any other API key. Default: accepts any key, or none. */
  keys?: readonly string[] | undefined
  /** Behaviour for every request. Default: the defaults of each knob. */
  knobs?: MockKnobs | undefined
  /** Behaviour by model. Models that are not listed are answered as well. Default: none. */
  models?: Readonly<Record<string, MockKnobs>> | undefined
  /** Number of calls that are recorded individually, the newest. Range: integers from 0. Default: 10,000. */
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
