import { describe, expect, it } from 'vitest'
import { EndpointNames, endpointOf } from './endpoint.js'

describe('endpointOf', () => {
  it.each([
    ['/chat?a=b', '/chat'],
    ['/ch%61t', '/chat'],
    ['/%63%68%61%74#x', '/chat'],
    ['http://host.example/chat?a', '/chat'],
    ['http://host.example', '/'],
    ['/a%2fb', '/a%2Fb'],
    ['/%2563hat', '/%2563hat'],
    ['*', '*'],
    ['', '/'],
  ])('the endpoint of %s is %s', (url, endpoint) => {
    expect(endpointOf(url)).toBe(endpoint)
  })
})

describe('EndpointNames', () => {
  const names = new EndpointNames(['/Chat', '/images/'])
  const LOOSE = { caseSensitive: false, strict: false }

  it('EndpointNames finds the name of a limit in every spelling that a loose router accepts', () => {
    expect(names.find('/CHAT/', LOOSE)).toBe('/Chat')
    expect(names.find('/Images', LOOSE)).toBe('/images/')
    expect(names.find('/Other/', LOOSE)).toBe('/other')
    expect(names.find('/', LOOSE)).toBe('/')
  })

  it('EndpointNames separates spellings that a strict router separates', () => {
    const strict = { caseSensitive: true, strict: true }
    expect(names.find('/CHAT', strict)).toBe('/CHAT')
    expect(names.find('/images', strict)).toBe('/images')
  })
})
