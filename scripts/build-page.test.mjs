import { readFileSync, statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { buildPage, PAGE } from './build-page.mjs'

describe('buildPage()', () => {
  it('the page is not rebuilt while its sources are unchanged', async () => {
    await buildPage()
    const before = statSync(PAGE).mtimeMs
    const printed = []
    await buildPage((line) => printed.push(line))
    expect(printed).toEqual([])
    expect(statSync(PAGE).mtimeMs).toBe(before)
  })

  it('the build writes one page with everything inside and its source hash at the end', () => {
    const page = readFileSync(PAGE, 'utf8')
    expect(page).toMatch(/^<!doctype html>/i)
    expect(page.match(/<script/g)?.length).toBe(1)
    expect(page).toMatch(/<!-- built from [0-9a-f]{64} -->\n$/)
  })
})
