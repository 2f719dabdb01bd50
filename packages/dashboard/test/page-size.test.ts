// test-group: io

/** The page as it is shipped. */
import { existsSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'

const PAGE = new URL('../../spillway/dist/http/dashboard/page.html', import.meta.url)

describe('the page that is shipped', () => {
  let page = ''
  beforeAll(() => {
    if (!existsSync(PAGE)) throw new Error('the page is not built: node scripts/build-page.mjs')
    page = readFileSync(PAGE, 'utf8')
  })

  it('has at most 120 kB of JavaScript, packed', () => {
    const scripts = [...page.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)]
    expect(scripts).toHaveLength(1)
    const bytes = gzipSync(scripts[0]?.[1] ?? '').length
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThanOrEqual(120_000)
  })

  it('needs nothing from anywhere else', () => {
    const markup = page.replace(/<(script|style)[^>]*>[\s\S]*?<\/\1>/g, '')
    const addresses = [...markup.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address)
    expect(addresses.filter((each) => !each?.startsWith('data:'))).toEqual([])
    expect(page).not.toMatch(/@import|url\((?!["']?data:)/)
    // What a policy for the content of pages forbids.
    expect(markup).not.toMatch(/ style="| on\w+="/)
  })
})
