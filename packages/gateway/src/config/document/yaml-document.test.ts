import { describe, expect, it } from 'vitest'
import type { ConfigError } from '../config-error.js'
import { loadConfig } from '../load.js'

const load = (text: string) => loadConfig({ file: 'a.yaml', text, env: {} })

function reportOf(text: string): string {
  try {
    load(text)
  } catch (error) {
    return (error as ConfigError).message
  }
  throw new Error('no mistake was found')
}

describe('invalid YAML', () => {
  it.each([
    ['a: b: c\n', 'a.yaml:1:4  is not YAML: a value with ": " in it needs quotes'],
    ['a:\n\tb: 1\n', 'a.yaml:2:1  is not YAML: tabs cannot indent: use spaces'],
    ['a: 1\nb: "c\nd: 2\n', 'a.yaml:2:4  is not YAML: a quote that is never closed'],
    ['a: [1, 2\n', 'a.yaml:2:1  is not YAML: a [ or { that is never closed'],
    ['a: @b\n', 'a.yaml:1:4  is not YAML: plain value cannot start with reserved character @'],
    ['a: !secret b\n', 'a.yaml:1:4  is not YAML: a tag (!) has no meaning here'],
    ['a: !!binary aGk=\n', 'a.yaml:1:4  is not YAML: a tag (!) has no meaning here'],
    ['a: 1\n---\nb: 2\n', 'a.yaml:2:1  is not YAML: a second document (---) has no meaning here'],
    ['? [a]\n: b\n', 'a.yaml:1:3  is not YAML: a name must be text'],
  ])('invalid YAML is reported: %j', (text, expected) => {
    expect(reportOf(text).split('\n')[0]).toBe(expected)
  })

  it('a YAML error is shown with its line like any other mistake', () => {
    expect(reportOf('a:\n\tb: 1\n')).toBe(
      'a.yaml:2:1  is not YAML: tabs cannot indent: use spaces\n    2 | \tb: 1\n      | ^',
    )
  })

  it('the report of a long YAML error is limited', () => {
    expect(reportOf('['.repeat(5_000)).split('\n').length).toBeLessThan(70)
  })
})

describe('duplicate keys', () => {
  it('a duplicate key is reported at its second use together with other mistakes', () => {
    const text = `port: 1
vendors:
  openai: { protocol: openai }
  openai: { protocol: anthropic }
port: 2
log: { level: loud }
`
    const lines = reportOf(text).split('\n')
    expect(lines.filter((line) => line.startsWith('a.yaml'))).toEqual([
      'a.yaml:4:3  vendors.openai: is written twice, first in line 3: keep one of them',
      'a.yaml:5:1  port: is written twice, first in line 1: keep one of them',
      expect.stringContaining('a.yaml:6:15  log.level'),
    ])
  })
})

describe('YAML aliases', () => {
  it('an alias has the value of its anchor, and mistakes in it are reported for each use', () => {
    const config = load(`vendors:
  a:
    protocol: openai
    limits: &limits
      - { limit: 5, windowMs: 1m }
  b: { protocol: anthropic, limits: *limits }
`)
    expect(config.vendors[1]?.guard.limits).toEqual([{ limit: 5, windowMs: '1m', learn: true }])
    const report = reportOf(`vendors:
  a:
    protocol: openai
    limits: &limits
      - { limit: 0, windowMs: 1m }
  b: { protocol: anthropic, limits: *limits }
`)
    expect(report).toContain('a.yaml:5:18  vendors.a.limits[0].limit')
    expect(report).toContain('a.yaml:5:18  vendors.b.limits[0].limit')
  })

  it('a mistake of an alias is reported at the alias', () => {
    const text = 'vendors: { a: { protocol: &p openai, connectMs: *p } }'
    expect(reportOf(text)).toContain('a.yaml:1:49  vendors.a.connectMs')
  })

  it('an alias without an anchor or inside its own anchor is rejected', () => {
    expect(reportOf('vendors: *none\n')).toContain(
      'a.yaml:1:10  vendors: is an alias (*) without its anchor (&) before it',
    )
    expect(reportOf('vendors: &v { a: *v }\n')).toContain(
      'a.yaml:1:18  vendors.a: is an alias of something that it is a part of',
    )
    expect(reportOf('vendors: &v\n  <<: *v\n')).toContain('is an alias of something')
  })

  it("nested aliases cannot exhaust the gateway's memory", () => {
    const levels = Array.from({ length: 12 }, (_, level) => {
      const items = Array.from({ length: 10 }, () => (level === 0 ? 'x' : `*a${level - 1}`))
      return `a${level}: &a${level} [${items.join(', ')}]\n`
    })
    expect(reportOf(levels.join(''))).toContain('aliases repeat what they stand for')
  })
})

describe('YAML merge keys', () => {
  it('a merge fills in missing values, and the first of several merges wins', () => {
    const config = load(`vendors:
  a: &a { protocol: openai, url: mock, connectMs: 1s }
  b: &b { protocol: openai, connectMs: 2s, queue: { size: 1 } }
  c:
    <<: [*b, *a]
    protocol: anthropic
routes: [{ vendor: c }]
`)
    expect(config.vendors[2]).toMatchObject({
      protocol: 'anthropic',
      url: 'mock',
      connectMs: 2_000,
      guard: { queue: { size: 1 } },
    })
  })

  it('a merge accepts only maps', () => {
    expect(reportOf('vendors: { a: { <<: 5 } }')).toContain(
      'a.yaml:1:21  vendors.a.<<: must be a map, or a list of maps, to merge',
    )
  })

  it('a quoted merge key is an ordinary name', () => {
    expect(reportOf('vendors: { a: { protocol: openai, "<<": 5 } }')).toContain('unknown option')
  })
})

describe('line of a mistake', () => {
  it('the line of a mistake is correct with a byte order mark and with CRLF line ends', () => {
    expect(reportOf('\uFEFFport: x\r\nvendors: 5\r\n')).toBe(
      `a.yaml:1:7  port: must be an integer from 0 to 65535, got "x"
    1 | port: x
      |       ^
a.yaml:2:10  vendors: must be an object with at least one vendor, got a number
    2 | vendors: 5
      |          ^`,
    )
    expect(load('\uFEFFvendors: { a: { protocol: openai } }\r\n').vendors).toHaveLength(1)
  })

  it('a missing value is reported at its name and an empty string at its quotes', () => {
    const report = reportOf('vendors: { a: { protocol: openai } }\nlog:\nhost: ""\ncallers:\n  -\n')
    expect(report.match(/^a\.yaml:\S+ {2}[^:]+/gm)).toEqual([
      'a.yaml:2:1  log',
      'a.yaml:3:7  host',
      'a.yaml:5:4  callers[0]',
    ])
  })

  it('a quoted line keeps its tabs, so that the mark is below the right column', () => {
    expect(reportOf('vendors:\t5')).toContain('    1 | vendors:\t5\n      |         \t^')
  })

  it('a long line is cut in the report', () => {
    const text = `vendors: { a: { protocol: openai, ${'shed: {}, '.repeat(50)} port: 5 } }`
    for (const line of reportOf(text).split('\n')) expect(line.length).toBeLessThan(300)
  })

  it('control characters in the file do not reach the terminal', () => {
    expect(reportOf('"\\e[31m": 5\nvendors: 1 # \u001b[31m')).not.toContain('\u001b')
  })

  it('a name that contains dots is found in the file', () => {
    expect(reportOf('vendors: { a.b: { protocol: openai, queue: {} } }')).toContain(
      'a.yaml:1:37  vendors.a.b.queue.size',
    )
  })
})
