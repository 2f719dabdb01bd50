/** Finds the Redis server of a fleet for commands that operate it. */
import { builtInConfig } from '../../config/built-in-config.js'
import type { GatewayConfig, RedisConfig } from '../../config/config.js'
import { loadConfig } from '../../config/load.js'
import { isPlaceholder, missingIn, placeholderSecrets } from '../../config/placeholder-secrets.js'
import { CommandError } from '../command-error.js'
import { findConfigFile } from '../config-file.js'
import { UsageError } from '../parse-args.js'

/** Values of `STORE_OPTIONS`. */
export interface StoreValues {
  readonly config?: string | undefined
  readonly redis?: string | undefined
  readonly prefix?: string | undefined
}

export interface StoreSource {
  /** The built-in configuration if there is no file. */
  readonly config: GatewayConfig
  readonly redis: RedisConfig
}

/** Missing secrets of vendors are allowed, because these commands do not call vendors. */
export function readStoreSource({ config: given, redis: url, prefix }: StoreValues): StoreSource {
  const file = findConfigFile(given)
  const config =
    file === undefined ? builtInConfig() : loadConfig({ file, ...placeholderSecrets(file) })
  const redis = url === undefined ? configuredRedis(config.redis, file) : { url: checkUrl(url) }
  return { config, redis: prefix === undefined ? redis : { ...redis, prefix } }
}

function configuredRedis(redis: RedisConfig | undefined, file: string | undefined): RedisConfig {
  if (redis === undefined) {
    const missing =
      file === undefined
        ? 'no spillway.yaml in this folder and no'
        : `${file} has no redis and there is no`
    throw new CommandError(
      `${missing} REDIS_URL; use --config FILE or --redis URL, or --admin URL for a gateway without Redis`,
    )
  }
  const { tls = {}, urls = [], sentinels = [], url, password } = redis
  const missing = [url, password, ...urls, ...sentinels, ...Object.values(tls)].find(isPlaceholder)
  if (missing === undefined) return redis
  throw new CommandError(`${file}: redis: ${missingIn(String(missing))} is missing`)
}

function checkUrl(text: string): string {
  if (URL.canParse(text) && /^(rediss?|unix):$/.test(new URL(text).protocol)) return text
  throw new UsageError('--redis: must be a URL such as redis://127.0.0.1:6379')
}
