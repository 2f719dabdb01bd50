/** Removes known secrets from texts of other programs, such as error messages. */
import type { GatewayConfig } from '../config/config.js'

const MASK = '***'
/** A shorter text would match in many places by chance. */
const SHORTEST = 6

export type Scrub = (text: string) => string

/** Removes the secrets of a configuration: vendor keys, header values, store URLs and the operators' token. */
export function createScrub({
  vendors,
  redis,
  admin,
}: Pick<GatewayConfig, 'vendors' | 'redis' | 'admin'>): Scrub {
  const known = new Set<string>()
  for (const { keys, headers } of vendors) {
    for (const { secret } of keys) known.add(secret)
    for (const value of Object.values(headers)) known.add(value)
  }
  for (const url of [redis?.url, ...(redis?.urls ?? []), ...(redis?.sentinels ?? [])]) {
    const password = passwordIn(url)
    if (url === undefined || password === '') continue
    known.add(url).add(password).add(decoded(password))
  }
  for (const own of [redis?.password, redis?.tls?.key, admin.token]) {
    if (typeof own === 'string') known.add(own)
  }
  const secrets = [...known]
    .filter((secret) => secret.length >= SHORTEST)
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, MASK), text)
}

function passwordIn(url: string | undefined): string {
  return url !== undefined && URL.canParse(url) ? new URL(url).password : ''
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
