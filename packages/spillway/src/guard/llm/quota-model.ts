/**
 * Counting rules of a vendor: tokens charged when a request arrives, and when its answer is complete. See
 * docs/gateway/quotas.md for the rules that the vendors document.
 */
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { TokenUsage } from './usage/token-usage.js'

/** A request, as far as its cost depends on it. */
export interface ReservedRequest {
  readonly promptTokens: number
  /** The part of the prompt that is expected to be read from a cache. */
  readonly cachedTokens: number
  /** Of each answer. */
  readonly maxTokens: number | undefined
  readonly answers: number
}

/** The rules of one vendor. */
interface QuotaRules {
  /** `usual`: what answers usually need. `max`: `max_tokens`. `larger`: `max_tokens`, or the prompt if that is more. */
  readonly reserves: 'usual' | 'max' | 'larger'
  /** Tokens reserved for `max_tokens` are not returned after a shorter answer. */
  readonly keeps: boolean
  /** Input that is read from a cache counts. `reserved`: until the answer is complete. */
  readonly countsCached: boolean | 'reserved'
  /** Factor for output tokens. */
  readonly outputFactor: number
}

const RULES = {
  openai: { reserves: 'larger', keeps: true, countsCached: true, outputFactor: 1 },
  azure: { reserves: 'max', keeps: true, countsCached: true, outputFactor: 1 },
  anthropic: { reserves: 'usual', keeps: false, countsCached: false, outputFactor: 1 },
  bedrock: { reserves: 'max', keeps: false, countsCached: 'reserved', outputFactor: 5 },
  gemini: { reserves: 'usual', keeps: false, countsCached: true, outputFactor: 0 },
  reported: { reserves: 'usual', keeps: false, countsCached: true, outputFactor: 1 },
} as const satisfies Record<string, QuotaRules>

/** Names of the quota models. `reported`: the tokens that the answer reports, all counted once. */
export type QuotaName = keyof typeof RULES

export const QUOTA_NAMES = Object.keys(RULES) as [QuotaName, ...QuotaName[]]

/** The rules by which a vendor counts tokens, with single rules replaced. */
export interface QuotaOptions {
  /** The vendor whose rules apply to the fields that are not set here. Default: that of a client without `quota`. */
  preset?: QuotaName
  /**
   * What a request reserves for its answers. `usual`: what answers of its lane usually need. `max`: `max_tokens`.
   * `larger`: `max_tokens`, or the prompt if that is more, for both together. Default: that of the preset.
   */
  reserve?: 'usual' | 'max' | 'larger'
  /** True: tokens reserved for `max_tokens` stay spent when the answer is shorter. Default: that of the preset. */
  keepReserved?: boolean
  /**
   * Whether input tokens that the vendor reads from its prompt cache count. `reserved`: until the answer is
   * complete. Default: that of the preset.
   */
  countCacheReads?: boolean | 'reserved'
  /** Tokens that one token of output counts as. Range: 0 to 100. Default: that of the preset. */
  outputFactor?: number
}

/** As checked: a preset, or rules of which some may be undefined. */
export type QuotaSetting =
  | QuotaName
  | { readonly [K in keyof QuotaOptions]?: QuotaOptions[K] | undefined }

/** The rules of a preset, unless the options replace them. */
function rulesOf(quota: QuotaSetting): QuotaRules {
  if (typeof quota === 'string') return RULES[quota]
  const preset: QuotaRules = RULES[quota.preset ?? 'reported']
  return {
    reserves: quota.reserve ?? preset.reserves,
    keeps: quota.keepReserved ?? preset.keeps,
    countsCached: quota.countCacheReads ?? preset.countsCached,
    outputFactor: quota.outputFactor ?? preset.outputFactor,
  }
}

/** The public API of OpenAI, also its hosts for single regions. */
const OPENAI_HOST = /^([a-z0-9-]+\.)?api\.openai\.com$/

/**
 * The quota model of a protocol. Many vendors have OpenAI's API, but not its rules, so the host decides: with another
 * vendor, reserving `max_tokens` would leave most of a limit unused.
 */
export function quotaOf(
  protocol: 'openai' | 'anthropic' | 'gemini' | 'azure' | 'http',
  host: string,
): QuotaName {
  if (protocol === 'openai') return OPENAI_HOST.test(host) ? 'openai' : 'reported'
  return protocol === 'http' ? 'reported' : protocol
}

export class QuotaModel {
  readonly #rules: QuotaRules

  constructor(quota: QuotaSetting) {
    this.#rules = rulesOf(quota)
  }

  /** A request may reserve a whole limit, because the vendor does so. */
  get reservesMax(): boolean {
    return this.#rules.reserves !== 'usual'
  }

  /** Tokens reserved for `max_tokens` are not returned after a shorter answer. */
  get keepsMax(): boolean {
    return this.#rules.keeps
  }

  /** Input that is read from a cache is not even reserved. */
  get freesCached(): boolean {
    return this.#rules.countsCached === false
  }

  /** Tokens that a request is charged when it arrives. `usual`: tokens of one answer. */
  reserved(
    { promptTokens, cachedTokens, maxTokens, answers }: ReservedRequest,
    usual: number,
  ): Cost {
    const { reserves, outputFactor } = this.#rules
    const expected = Math.min(usual, maxTokens ?? usual) * answers
    const inputTokens = this.freesCached ? promptTokens - cachedTokens : promptTokens
    if (reserves === 'usual' || maxTokens === undefined) {
      const counted = expected * outputFactor
      // Output that is not part of `tokens` is still counted on its own.
      const outputTokens = Math.max(expected, counted)
      return { tokens: inputTokens + counted, inputTokens, outputTokens }
    }
    // If output counts several times, the vendor may charge more than `max_tokens`.
    const outputTokens = Math.max(maxTokens * answers, expected * outputFactor)
    const tokens =
      reserves === 'larger' ? Math.max(inputTokens, outputTokens) : inputTokens + outputTokens
    return { tokens, inputTokens, outputTokens }
  }

  /**
   * Tokens that the request is charged once its answer is complete. Units that are not reported keep the reserved
   * amount.
   */
  counted(
    usage: TokenUsage,
    { maxTokens, answers }: Pick<ReservedRequest, 'maxTokens' | 'answers'>,
  ): Cost {
    const { reserves, keeps, countsCached, outputFactor } = this.#rules
    const { inputTokens: whole, outputTokens, cachedTokens = 0 } = usage
    const cost: Record<string, number> = { ...usage } as Record<string, number>
    const inputTokens = whole === undefined || countsCached === true ? whole : whole - cachedTokens
    if (inputTokens !== undefined) cost.inputTokens = inputTokens
    if (inputTokens === undefined || outputTokens === undefined) return cost
    if (keeps && maxTokens !== undefined) {
      const most = maxTokens * answers
      cost.outputTokens = most
      cost.tokens = reserves === 'larger' ? Math.max(inputTokens, most) : inputTokens + most
      return cost
    }
    const isPlain = countsCached === true && outputFactor === 1
    if (!isPlain) cost.tokens = inputTokens + outputTokens * outputFactor
    if (outputFactor > 1) cost.outputTokens = outputTokens * outputFactor
    return cost
  }
}
