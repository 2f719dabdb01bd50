import { type Check, describedAs } from 'spillway/options'
import { type Sources, secret } from './secret-reference.js'

/** Shorter ones can be guessed. */
const SHORTEST = 16

/** The token of operators. */
export function readToken(sources: Sources): Check<string> {
  const readSecret = secret(sources)
  const check: Check<string> = (value, path, problems) => {
    const before = problems.length
    const token = readSecret(value, path, problems)
    if (problems.length === before && token.length < SHORTEST) {
      const message = `refers to something too short: a token has at least ${SHORTEST} characters`
      problems.push({ path, message })
    }
    return token
  }
  return describedAs(check, readSecret)
}
