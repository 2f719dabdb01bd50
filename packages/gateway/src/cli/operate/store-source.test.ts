import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readStoreSource } from './store-source.js'

function configFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'store-source-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'a.yaml')
  writeFileSync(file, text)
  return file
}

function stubRedisUrl(url: string | undefined): void {
  vi.stubEnv('REDIS_URL', url)
  onTestFinished(() => void vi.unstubAllEnvs())
}

const VENDORS = 'vendors: { a: { protocol: openai, key: env:NOT_SET_ANYWHERE } }\n'

describe('Redis server of a fleet', () => {
  it('--redis and --prefix override the configuration', () => {
    const config = configFile(`${VENDORS}redis: { url: redis://cache, prefix: team }\n`)
    expect(readStoreSource({ config }).redis).toMatchObject({
      url: 'redis://cache',
      prefix: 'team',
    })
    expect(readStoreSource({ config, prefix: 'b' }).redis).toMatchObject({
      url: 'redis://cache',
      prefix: 'b',
    })
    expect(readStoreSource({ config, redis: 'redis://other' }).redis).toEqual({
      url: 'redis://other',
    })
  })

  it('REDIS_URL is used without a file, and with a file that has no redis', () => {
    stubRedisUrl('redis://cache')
    expect(readStoreSource({}).redis).toMatchObject({ url: 'redis://cache' })
    const config = configFile(VENDORS)
    expect(readStoreSource({ config }).redis).toMatchObject({ url: 'redis://cache' })
  })

  it('a fleet without Redis is refused with the options that help', () => {
    stubRedisUrl(undefined)
    const config = configFile(VENDORS)
    const help = 'use --config FILE or --redis URL, or --admin URL for a gateway without Redis'
    expect(() => readStoreSource({})).toThrow(
      `no spillway.yaml in this folder and no REDIS_URL; ${help}`,
    )
    expect(() => readStoreSource({ config })).toThrow(
      `${config} has no redis and there is no REDIS_URL; ${help}`,
    )
  })
})
