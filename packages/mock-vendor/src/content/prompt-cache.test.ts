import { describe, expect, it } from 'vitest'
import { markedPartsOf, PromptCache, type PromptPart, partsOf } from './prompt-cache.js'

const OPTIONS = { minTokens: 100, ttlMs: 1_000 }
/** A message of 256 tokens. */
const message = (name: string) => ({ role: 'user', content: name.padEnd(1_024, '.') })
const automatic = (...names: string[]) => ({
  parts: partsOf(names.map(message)),
  caching: 'automatic' as const,
})

describe('automatic prompt caching', () => {
  it('a conversation that grows finds its earlier turns in the cache', () => {
    const cache = new PromptCache(OPTIONS)
    expect(cache.use('lane', automatic('a'), 0).cachedTokens).toBe(0)
    expect(cache.use('lane', automatic('a', 'b'), 1).cachedTokens).toBe(256)
    expect(cache.use('lane', automatic('a', 'b', 'c'), 2)).toEqual({
      cachedTokens: 512,
      cacheWriteTokens: 0,
    })
  })

  it('another beginning, another lane and an expired prefix are not found', () => {
    const cache = new PromptCache(OPTIONS)
    cache.use('lane', automatic('a', 'b'), 0)
    expect(cache.use('lane', automatic('b', 'a'), 1).cachedTokens).toBe(0)
    expect(cache.use('other', automatic('a', 'b'), 1).cachedTokens).toBe(0)
    expect(cache.use('lane', automatic('a', 'b'), 1_000).cachedTokens).toBe(0)
    expect(cache.use('lane', automatic('a', 'b'), 1_999).cachedTokens).toBe(512)
  })

  it('a prefix below the least length is not cached', () => {
    const cache = new PromptCache({ ...OPTIONS, minTokens: 257 })
    cache.use('lane', automatic('a'), 0)
    expect(cache.use('lane', automatic('a'), 1).cachedTokens).toBe(0)
  })
})

describe('prompt caching by marks', () => {
  const block = (name: string, isMarked = false) => ({
    type: 'text',
    text: name.padEnd(1_024, '.'),
    ...(isMarked && { cache_control: { type: 'ephemeral' } }),
  })
  const use = (cache: PromptCache, parts: PromptPart[], nowMs = 0) =>
    cache.use('lane', { parts, caching: 'marked' }, nowMs)

  it('a request without marks neither reads nor writes the cache', () => {
    const cache = new PromptCache(OPTIONS)
    const parts = markedPartsOf(undefined, [{ role: 'user', content: [block('a')] }])
    expect(use(cache, parts)).toEqual({ cachedTokens: 0, cacheWriteTokens: 0 })
    expect(use(cache, parts)).toEqual({ cachedTokens: 0, cacheWriteTokens: 0 })
  })

  it('a turn writes up to its mark and reads what the turn before has written', () => {
    const cache = new PromptCache(OPTIONS)
    const first = markedPartsOf([block('system', true)], [{ content: [block('a', true)] }])
    expect(use(cache, first)).toEqual({ cachedTokens: 0, cacheWriteTokens: 512 })
    const second = markedPartsOf(
      [block('system')],
      [{ content: [block('a')] }, { content: [block('b', true)] }, { content: 'last' }],
    )
    expect(use(cache, second)).toEqual({ cachedTokens: 512, cacheWriteTokens: 256 })
    expect(use(cache, second)).toEqual({ cachedTokens: 768, cacheWriteTokens: 0 })
  })

  it('a text is found in the cache whether it is sent as a string or as a block', () => {
    const cache = new PromptCache(OPTIONS)
    const { text } = block('a')
    const system = block('system').text
    const first = markedPartsOf([block('system')], [{ content: [block('a', true)] }])
    expect(use(cache, first)).toEqual({ cachedTokens: 0, cacheWriteTokens: 512 })
    const second = markedPartsOf(system, [{ content: text }, { content: [block('b', true)] }])
    expect(use(cache, second)).toEqual({ cachedTokens: 512, cacheWriteTokens: 256 })
  })
})
