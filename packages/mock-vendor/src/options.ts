import {
  arrayOf,
  type Duration,
  either,
  integer,
  object,
  oneOf,
  optional,
  text,
} from 'spillway/options'
import { flag, recordOf } from './checks.js'
import { readPromptCache } from './content/prompt-cache.js'
import { type MockKnobs, readKnobs } from './knobs.js'
import { type MockLimit, readLimit } from './quota/contract.js'
import { QUOTA_NAMES, type QuotaName } from './quota/quota-models.js'

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
  /**
   * The vendor by whose rules `limits` are counted: what is reserved, what is corrected afterwards, and which kind
   * of window is used. Range: `openai`, `anthropic`, `azure`, `bedrock` or `gemini`. Default: sliding windows that
   * count every request with its actual cost when it arrives.
   */
  quota?: QuotaName | undefined
  /**
   * Caches prefixes of prompts, and reports tokens read from the cache and written to it: true, or an object.
   * Default: false.
   */
  promptCache?:
    | boolean
    | {
        /** Tokens of the shortest prefix that is cached. Range: integers from 0. Default: 1,024 tokens. */
        minTokens?: number | undefined
        /** How long a prefix is kept after its last use. Range: from 1 ms. Default: 5 minutes. */
        ttlMs?: Duration | undefined
      }
    | undefined
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
  quota: optional(oneOf(...QUOTA_NAMES)),
  promptCache: optional(either(readPromptCache, flag), false),
  keys: optional(arrayOf(text())),
  knobs: optional(readKnobs, {} as ReturnType<typeof readKnobs>),
  models: recordOf(readKnobs),
  maxCalls: optional(integer({ min: 0 }), 10_000),
  unref: optional(flag, false),
})

export type Options = ReturnType<typeof readOptions>
