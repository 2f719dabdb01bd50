import { describe, expect, it } from 'vitest'
import { canonicalPath, faultInLlmPath, faultInUrl, requestTarget } from './request-url.js'

describe('canonicalPath', () => {
  it.each([
    ['/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/%63ompletions', '/v1/chat/completions'],
    ['/%76%31/%43hat', '/v1/Chat'],
    ['/a%2fb', '/a%2Fb'],
    ['/a%2Fb', '/a%2Fb'],
    ['/%2563ompletions', '/%2563ompletions'],
    ['/%e2%82%ac', '/%E2%82%AC'],
    ['/%7e%2D%5f%2e', '/~-_.'],
    ['/a%3ab%3b', '/a%3Ab%3B'],
  ])('the canonical form of %s is %s', (path, canonical) => {
    expect(canonicalPath(path)).toBe(canonical)
    expect(canonicalPath(canonical)).toBe(canonical)
  })

  it('the query of a URL is left as the client wrote it', () => {
    expect(requestTarget('/%61?%61=%2f&b=/../')).toEqual({ path: '/a', query: '?%61=%2f&b=/../' })
  })
})

describe('faultInUrl', () => {
  it.each([
    '/v1/%2e%2e/admin',
    '/v1/.%2e/admin',
    '/v1/%252e%252e/admin',
    '/v1/%25252525252e/admin',
    `/v1/%${'25'.repeat(20)}2e%${'25'.repeat(20)}2e/admin`,
    '/v1/%252e%252e/%25zz',
    '/v1/..%2f',
    '/v1/..%3bx/admin',
    '/v1/%5c',
    '/v1/%255c',
    '/v1/%2500',
  ])('%s is refused on every route', (url) => {
    expect(faultInUrl(url)).toMatchObject({ status: 400, code: 'INVALID_URL' })
  })

  it.each(['/v1/a%2Fb', '/v1/100%25', '/v1/%25zz', '/v1/%2563', '/v1/%E2%82%AC', '/v1/a..b/.c'])(
    '%s is accepted',
    (url) => {
      expect(faultInUrl(url)).toBeUndefined()
    },
  )
})

describe('faultInLlmPath', () => {
  it.each([
    '/v1//chat',
    '/v1/%2Fchat',
    '/v1%2F/chat',
    '/v1/%252Fchat',
    '/v1/chat/',
    '/v1/chat%2F',
    '/v1/chat;a=b',
    '/v1/chat%3Ba',
    '/v1/Chat/completions',
    '/v1/chat/COMPLETIONS',
    '/V1/embeddings',
    '/v1/chat%2Fcompletions',
    '/v1/chat%252Fcompletions',
    '/v1/chat/%2563ompletions',
    '/openai/deployments/GPT-4/Chat/completions',
    '/v1/messages/Count_Tokens',
  ])('%s is refused on the routes of an LLM API', (path) => {
    expect(faultInLlmPath(path)).toMatchObject({ status: 400, code: 'INVALID_URL' })
  })

  it.each([
    '/v1/models/meta%2Fllama',
    '/v1/models/Meta-Llama-3',
    '/v1/models/50%2525',
    '/openai/deployments/GPT-4/chat/completions',
    '/v1/files/File-ABC',
  ])('%s is accepted on the routes of an LLM API', (path) => {
    expect(faultInLlmPath(path)).toBeUndefined()
  })
})
