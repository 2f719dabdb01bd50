/** For what somebody else has put into words, such as the message of an error: without any secret we know of. */
import type { GatewayConfig } from '../config/config.js'

const MASK = '***'
/** A shorter one would be found everywhere. */
const SHORTEST = 6

export type Scrub = (text: string) => string

/** Knows the secrets of a configuration: keys of vendors, headers, and what is in the store's URL. */
export function createScrub({ vendors, redis }: Pick<GatewayConfig, 'vendors' | 'redis'>): Scrub {
  const known = new Set<string>()
  for (const { keys, headers } of vendors) {
    for (const { secret } of keys) known.add(secret)
    for (const value of Object.values(headers)) known.add(value)
  }
  if (redis !== undefined) {
    known.add(redis.url)
    if (URL.canParse(redis.url)) {
      const { password } = new URL(redis.url)
      known.add(password).add(decoded(password))
    }
  }
  const secrets = [...known]
    .filter((secret) => secret.length >= SHORTEST)
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, MASK), text)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
