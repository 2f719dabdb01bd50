/** The addresses of Redis servers, without logins. */
import type { RedisConfig } from './config.js'

/** Host and port of each server, of the Sentinels if there are some. */
export function redisAddress({ url, urls, sentinels }: RedisConfig): string {
  return (urls ?? sentinels ?? [url ?? 'redis://127.0.0.1:6379']).map(hostOf).join(', ')
}

/** The host of a URL, with its port, or the path of a socket. */
export function hostOf(url: string): string {
  const { host, pathname, protocol } = new URL(url)
  return protocol === 'unix:' ? pathname : host
}
