/** How the shared store is written down. A URL is never shown: it may have a password in it. */
import { type Check, object, optional, text } from 'spillway/options'
import type { GatewayConfig } from './config.js'
import type { Mistake } from './mistake.js'
import { resolve, type Sources } from './references.js'

type Redis = GatewayConfig['redis']

const VARIABLE = 'REDIS_URL'

export function readRedis(sources: Sources): Check<Redis> {
  const readUrl = urlShape(sources)
  const readObject = object({ url: readUrl, prefix: optional(text()) })
  return (value, path, problems: Mistake[]) => {
    if (value === undefined) return usualRedis(sources, path, problems)
    if (typeof value === 'object' && value !== null) return readObject(value, path, problems)
    return { url: readUrl(value, path, problems), prefix: undefined }
  }
}

function urlShape(sources: Sources): Check<string> {
  return (value, path, problems) => {
    const found = resolve(value, sources)
    const message = complaintAbout(value, found)
    if (message !== undefined) problems.push({ path, message })
    return found !== undefined && 'value' in found ? found.value : String(value)
  }
}

function complaintAbout(value: unknown, found: ReturnType<typeof resolve>): string | undefined {
  if (found !== undefined) {
    if ('problem' in found) return found.problem
    return isRedisUrl(found.value) ? undefined : 'refers to something that is no redis:// URL'
  }
  const expected = 'must be env:NAME, file:PATH or a redis:// URL'
  if (value === undefined || value === null) return `${expected}, got nothing`
  if (typeof value !== 'string' || !isRedisUrl(value)) return expected
  if (new URL(value).password === '' && !value.includes('?')) return undefined
  return 'must not contain a password: put the URL into a variable and write env:NAME'
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'unix:' || (/^rediss?:$/.test(protocol) && hostname !== '')
}

/** In a cluster the variable is there for everybody. */
function usualRedis(sources: Sources, path: string, problems: Mistake[]): Redis {
  const url = sources.env[VARIABLE]?.trim() ?? ''
  if (url === '') return undefined
  if (!isRedisUrl(url)) {
    const message = `the environment variable ${VARIABLE} is no redis:// URL`
    problems.push({ path, message, at: 'outside' })
  }
  return { url, prefix: undefined }
}
