import { type Check, described } from 'spillway/options'

const UNIT = { b: 1, kb: 1_024, mb: 1_024 ** 2, gb: 1_024 ** 3 } as const
const WRITTEN = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)$/i

/** Bytes as a number, or a written size. */
export function size({ min }: { min: number }): Check<number> {
  const check: Check<number> = (value, path, problems) => {
    const bytes = parseSize(value)
    if (bytes !== undefined && Number.isSafeInteger(bytes) && bytes >= min) return bytes
    const found = value === undefined ? 'nothing' : JSON.stringify(value)
    const expected = `a size of at least ${min} bytes, such as 65536 or '64kb'`
    problems.push({ path, message: `must be ${expected}, got ${found}` })
    return Number.NaN
  }
  return described(check, {
    anyOf: [
      { type: 'integer', minimum: min },
      { type: 'string', pattern: '^\\s*\\d+(\\.\\d+)?\\s*([kKmMgG]?[bB])\\s*$' },
    ],
  })
}

function parseSize(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  const [, amount, unit] = (typeof value === 'string' && WRITTEN.exec(value.trim())) || []
  if (amount === undefined || unit === undefined) return undefined
  return Math.round(Number(amount) * UNIT[unit.toLowerCase() as keyof typeof UNIT])
}
