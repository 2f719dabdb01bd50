import { describe, expect, it } from 'vitest'
import { DEFAULT_PATHS, matchesPath } from './default-paths.js'

describe('patterns of paths', () => {
  it.each([
    ['/a', '/a', true],
    ['/a', '/a/b', false],
    ['/a/*', '/a/b/c', true],
    ['/a*', '/a', true],
    ['/a/*:run', '/a/b:run', true],
    ['/a/*:run', '/a/:run', true],
    ['/a/*:run', '/a:run', false],
    ['/a/*:run', '/a/b/c:run', false],
    ['/a/*:run', '/a/b:run/c', false],
    ['/a/*/c', '/a/b/c', true],
    ['/a/*', '/a/*:run', true],
    ['/a/*:run', '/a/*', false],
  ])('the pattern %s and the path %s: %s', (pattern, path, matches) => {
    expect(matchesPath(pattern, path)).toBe(matches)
  })

  it('default paths of different protocols overlap only where clients are distinguished by a header', () => {
    const all = Object.entries(DEFAULT_PATHS).flatMap(([protocol, paths]) =>
      paths.map((each) => ({ protocol, ...each })),
    )
    const overlaps = all.flatMap((one) =>
      all
        .filter((other) => other.protocol > one.protocol)
        .filter(({ methods }) => methods?.some((each) => one.methods?.includes(each)))
        .filter((other) => matchesPath(one.path, other.path))
        .map((other) => `${one.protocol} ${other.protocol} ${other.path}`),
    )
    expect(overlaps).toEqual(['anthropic openai /v1/models', 'anthropic openai /v1/models/*'])
  })
})
