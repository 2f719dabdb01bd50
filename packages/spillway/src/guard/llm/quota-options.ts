/** The option `quota`: a vendor's rules by name, or with single rules replaced. */
import {
  bool,
  type Check,
  either,
  number,
  object,
  oneOf,
  optional,
} from '../../core/options/checks.js'
import { described, schemaOf } from '../../core/options/schema.js'
import { QUOTA_NAMES, type QuotaName } from './quota-model.js'

/** The rules by which a vendor counts tokens, with single rules replaced. */
export interface QuotaOptions {
  /** The vendor whose rules hold otherwise. Default: as if `quota` were absent. */
  preset?: QuotaName
  /**
   * What a request reserves for its answers. `usual`: what answers of its lane usually need. `max`: `max_tokens`.
   * `larger`: `max_tokens`, or the prompt if that is more, for both together. Default: that of the preset.
   */
  reserve?: 'usual' | 'max' | 'larger'
  /** What was reserved for `max_tokens` is not given back when the answer is shorter. Default: that of the preset. */
  keepReserved?: boolean
  /**
   * Input that the vendor reads from a cache counts. `reserved`: until the answer is complete. Default: that of the
   * preset.
   */
  countCacheReads?: boolean | 'reserved'
  /** What one token of output counts. Range: 0 to 100. Default: that of the preset. */
  outputFactor?: number
}

/** As checked: a preset, or rules of which some may be undefined. */
export type QuotaSetting =
  | QuotaName
  | { readonly [K in keyof QuotaOptions]?: QuotaOptions[K] | undefined }

export const quotaFields = {
  preset: optional(oneOf(...QUOTA_NAMES)),
  reserve: optional(oneOf('usual', 'max', 'larger')),
  keepReserved: optional(bool()),
  countCacheReads: optional(either(bool(), oneOf('reserved'))),
  outputFactor: optional(number({ min: 0, max: 100 })),
}

const readName = oneOf(...QUOTA_NAMES)

/** A name, or an object with these fields. */
export function nameOr<T>(readObject: Check<T>): Check<QuotaName | T> {
  const check: Check<QuotaName | T> = (value, path, problems) =>
    typeof value === 'object' && value !== null
      ? readObject(value, path, problems)
      : readName(value, path, problems)
  return described(check, () => ({ anyOf: [schemaOf(readName), schemaOf(readObject)] }))
}

export const readQuota = nameOr(object(quotaFields))
