// test-group: io

/** The page as shipped. */
import { existsSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'

const PAGE = new URL('../dist/page.html', import.meta.url)

describe('shipped page', () => {
  let page = ''
  beforeAll(() => {
    if (!existsSync(PAGE)) throw new Error('the page is not built: node scripts/build-page.mjs')
    page = readFileSync(PAGE, 'utf8')
  })

  it('the page has at most 120 kB of compressed JavaScript', () => {
    const scripts = [...page.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)]
    expect(scripts).toHaveLength(1)
    const bytes = gzipSync(scripts[0]?.[1] ?? '').length
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThanOrEqual(120_000)
  })

  it('the page loads nothing from elsewhere', () => {
    const markup = page.replace(/<(script|style)[^>]*>[\s\S]*?<\/\1>/g, '')
    const addresses = [...markup.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address)
    expect(addresses.filter((each) => !each?.startsWith('data:'))).toEqual([])
    expect(page).not.toMatch(/@import|url\((?!["']?data:)/)
    // Forbidden by the content security policy.
    expect(markup).not.toMatch(/ style="| on\w+="/)
  })
})
