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
